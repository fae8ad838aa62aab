"""Checks for impossible or contradictory numbers in a card."""

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
    """Report what is impossible in a card, one sentence each: in each axis separately, and axes that occur twice."""
    yield from repeated_axes(card)
    for axis in card.axes:
        yield from (f"{axis.name}: {problem}" for problem in axis_contradictions(axis))


def repeated_axes(card: Card) -> Iterator[str]:
    """Report axes that occur twice."""
    names = [axis.name for axis in card.axes]
    yield from (f"{name}: the axis occurs twice" for name in dict.fromkeys(names) if names.count(name) > 1)


def axis_contradictions(axis: CardAxis) -> Iterator[str]:
    """Report numbers of an axis that are impossible or contradict each other."""
    for quantity, numbers in axis.estimates.items():
        for metric, number in numbers.items():
            problem = _number_problem(number, *_BOUNDS.get(quantity, (-math.inf, math.inf)))
            if problem:
                yield f"{quantity}, {metric}: {problem}"
    for metric in METRICS:
        estimate, reference, gap, placebo, excess = (
            axis.number(quantity, metric) for quantity in ("accuracy", "reference_accuracy", "gap", "placebo", "excess")
        )
        if estimate is None:
            yield f"accuracy, {metric}: missing"
            continue
        accuracy = estimate.mean
        by_task = axis.by_task.get(metric)
        if by_task is not None:
            if len(by_task) != axis.tasks.tasks:
                yield f"by_task, {metric}: expected {axis.tasks.tasks:,} tasks, found {len(by_task):,}"
            elif not all(0 <= value <= 100 for value in by_task):
                yield f"by_task, {metric}: expected percentages from 0 to 100"
            elif not same_number(accuracy, float(np.mean(by_task))):
                yield f"accuracy, {metric}: {accuracy} is not the mean over its tasks, {np.mean(by_task):.4f}"
        if gap and (reference is None or not same_number(gap.mean, reference.mean - accuracy)):
            yield f"gap, {metric}: {gap.mean} is not the accuracy on the reference minus that on the axis"
        if excess and (gap is None or placebo is None or not same_number(excess.mean, gap.mean - placebo.mean)):
            yield f"excess, {metric}: {excess.mean} is not the gap minus the gap of the placebo"
    means = [interval.mean for metric in METRICS if (interval := axis.number("accuracy", metric))]
    if len(means) == 2 and means[1] > means[0] + ROUNDING:
        yield f"the accuracy on the worst class, {means[1]}, is higher than that on all classes, {means[0]}"
    for quantity, rank in axis.rank.items():
        if not 1 <= rank.best <= rank.worst <= rank.of:
            yield f"rank by {quantity}: {rank} is impossible"


def _number_problem(number: Interval, least: float, most: float) -> str | None:
    mean, has_interval = number.mean, not math.isnan(number.low + number.high)
    if number.has_mean and not least - ROUNDING <= mean <= most + ROUNDING:
        return f"expected a number from {least} to {most}, found {mean}"
    if number.has_mean and has_interval and not number.low <= mean <= number.high:
        return f"{mean} is outside its interval, {number.low} to {number.high}"
    if not 0 < number.level < 1:
        return f"expected a level between 0 and 1, found {number.level}"
    variances = (number.variance, number.uncertainty, number.task_variance)
    if any(variance is not None and variance < 0 for variance in variances):
        return "a variance is negative"
    return _interval_problem(number) if number.variance and number.uncertainty and has_interval else None


def _interval_problem(number: Interval) -> str | None:
    """Report an interval that does not follow from the variance beside it; None if it does."""
    try:
        expected = number.estimate.interval(number.covers, number.level)
    except (ArithmeticError, ValueError):  # numbers too extreme to compute with
        return f"no interval follows from the variance {number.variance}"
    slack = ROUNDING + 1e-6 * abs(expected.high - expected.low)
    if abs(number.low - expected.low) <= slack and abs(number.high - expected.high) <= slack:
        return None
    stated = f"the interval {number.low} to {number.high}"
    return f"{stated} does not follow from its variance: {expected.low:.4f} to {expected.high:.4f}"


def same_number(first: float, second: float) -> bool:
    """Return whether two means are equal up to rounding, or both missing."""
    return abs(first - second) <= ROUNDING or (math.isnan(first) and math.isnan(second))
