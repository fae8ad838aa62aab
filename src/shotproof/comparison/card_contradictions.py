"""Numbers of a card that cannot be, or that contradict each other."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shotproof.comparison.card import BY_TASK_DIGITS, Card, CardAxis
from shotproof.results.evaluated import METRICS
from shotproof.stats.intervals import Interval

ROUNDING = 10.0**-BY_TASK_DIGITS  # of the accuracies of single tasks
_BOUNDS = {"accuracy": (0, 100), "reference_accuracy": (0, 100), "gap": (-100, 100), "placebo": (-100, 100)}


def contradictions(card: Card) -> Iterator[str]:
    """Say what cannot be in a card, one sentence each: every axis by itself, and axes that are there twice."""
    yield from twice(card)
    for axis in card.axes:
        yield from (f"{axis.name}: {problem}" for problem in axis_contradictions(axis))


def twice(card: Card) -> Iterator[str]:
    """Say which axes are there twice."""
    names = [axis.name for axis in card.axes]
    yield from (f"{name}: the axis is there twice" for name in dict.fromkeys(names) if names.count(name) > 1)


def axis_contradictions(axis: CardAxis) -> Iterator[str]:
    """Say which numbers of an axis cannot be, or contradict each other."""
    for quantity, numbers in axis.estimates.items():
        for metric, number in numbers.items():
            reason = _wrong_number(number, *_BOUNDS.get(quantity, (-math.inf, math.inf)))
            if reason:
                yield f"{quantity}, {metric}: {reason}"
    for metric in METRICS:
        own, before, gap, placebo, excess = (
            axis.number(quantity, metric) for quantity in ("accuracy", "reference_accuracy", "gap", "placebo", "excess")
        )
        if own is None:
            yield f"accuracy, {metric}: it is missing"
            continue
        accuracy = own.mean
        by_task = axis.by_task.get(metric)
        if by_task is not None:
            if len(by_task) != axis.tasks.tasks:
                yield f"by_task, {metric}: expected {axis.tasks.tasks:,} tasks, found {len(by_task):,}"
            elif not all(0 <= one <= 100 for one in by_task):
                yield f"by_task, {metric}: expected percent, from 0 to 100"
            elif not same_number(accuracy, float(np.mean(by_task))):
                yield f"accuracy, {metric}: {accuracy} is not the mean over its tasks, {np.mean(by_task):.4f}"
        if gap and (before is None or not same_number(gap.mean, before.mean - accuracy)):
            yield f"gap, {metric}: {gap.mean} is not the reference's accuracy minus its own"
        if excess and (gap is None or placebo is None or not same_number(excess.mean, gap.mean - placebo.mean)):
            yield f"excess, {metric}: {excess.mean} is not the gap minus the placebo's"
    both = [one.mean for metric in METRICS if (one := axis.number("accuracy", metric))]
    if len(both) == 2 and both[1] > both[0] + ROUNDING:
        yield f"the worst class, {both[1]}, does better than all classes together, {both[0]}"
    for by, rank in axis.rank.items():
        if not 1 <= rank.best <= rank.worst <= rank.of:
            yield f"rank by {by}: {rank} cannot be"


def _wrong_number(number: Interval, least: float, most: float) -> str | None:
    mean, has_interval = number.mean, not math.isnan(number.low + number.high)
    if number.has_mean and not least - ROUNDING <= mean <= most + ROUNDING:
        return f"expected a number from {least} to {most}, found {mean}"
    if number.has_mean and has_interval and not number.low <= mean <= number.high:
        return f"{mean} is outside of its interval, {number.low} to {number.high}"
    if not 0 < number.level < 1:
        return f"expected a level between 0 and 1, found {number.level}"
    if any(one is not None and one < 0 for one in (number.variance, number.uncertainty, number.task_variance)):
        return "a variance is negative"
    return _other_interval(number) if number.variance and number.uncertainty and has_interval else None


def _other_interval(number: Interval) -> str | None:
    """Say what is wrong with an interval that does not follow from the variance beside it."""
    try:
        expected = number.estimate.interval(number.covers, number.level)
    except (ArithmeticError, ValueError):  # numbers beyond what can be computed with
        return f"no interval follows from the variance {number.variance}"
    slack = ROUNDING + 1e-6 * abs(expected.high - expected.low)
    if abs(number.low - expected.low) <= slack and abs(number.high - expected.high) <= slack:
        return None
    stated = f"the interval {number.low} to {number.high}"
    return f"{stated} does not follow from its variance: {expected.low:.4f} to {expected.high:.4f}"


def same_number(first: float, second: float) -> bool:
    """Return whether two means are the same but for rounding, or neither is there."""
    return abs(first - second) <= ROUNDING or (math.isnan(first) and math.isnan(second))
