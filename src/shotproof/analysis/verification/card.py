"""Whether a card is possible in itself and on its task sets, and whether its accuracies come out again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shotproof.analysis.verification.recomputation import Recomputation
from shotproof.core.arrays import FloatArray
from shotproof.evaluation.evaluated import METRICS
from shotproof.methods.method import Method, make_method
from shotproof.stats.card.card import BY_TASK_DIGITS, Card, CardAxis, CardNumber
from shotproof.tasks.taskset import TaskSet

ROUNDING = 10.0**-BY_TASK_DIGITS  # of the accuracies of single tasks
NUMBERS = ("accuracy", "reference_accuracy", "gap", "placebo_gap", "excess", "skill_lost")  # of an axis, by metric
_BOUNDS = {"accuracy": (0, 100), "reference_accuracy": (0, 100), "gap": (-100, 100), "placebo_gap": (-100, 100)}


def card_problems(
    card: Card,
    tasks: Sequence[TaskSet] = (),
    recomputation: Recomputation | None = None,
    method: Method | None = None,
) -> Iterator[str]:
    """What is wrong with a card, in sentences.

    Args:
        card: the card
        tasks: among which its task sets must be; none: that is not looked at
        recomputation: how its accuracies are computed anew; None: they are not
        method: the card's, made already; None: it is made from its spelling
    """
    names = [axis.name for axis in card.axes]
    yield from (f"{name}: the axis is there twice" for name in dict.fromkeys(names) if names.count(name) > 1)
    known = {one.digest: one for one in tasks}
    for axis in card.axes:
        problems = list(_impossible(axis))
        if tasks:
            problems += _other_tasks(axis, known)
        if recomputation is not None and not problems and axis.tasks.digest in known:
            problems += _other_accuracy(
                axis, known[axis.tasks.digest], recomputation, method or make_method(card.method)
            )
        yield from (f"{axis.name}: {problem}" for problem in problems)


def _impossible(axis: CardAxis) -> Iterator[str]:
    """Numbers that cannot be, or that contradict each other."""
    for field in NUMBERS:
        numbers: Mapping[str, CardNumber] = getattr(axis, field)
        for metric, number in numbers.items():
            reason = _wrong_number(number, *_BOUNDS.get(field, (-math.inf, math.inf)))
            if reason:
                yield f"{field}, {metric}: {reason}"
    for metric in METRICS:
        if metric not in axis.accuracy:
            yield f"accuracy, {metric}: it is missing"
            continue
        accuracy = axis.accuracy[metric].mean
        by_task = axis.by_task.get(metric)
        if by_task is not None:
            if len(by_task) != axis.tasks.tasks:
                yield f"by_task, {metric}: expected {axis.tasks.tasks:,} tasks, found {len(by_task):,}"
            elif not all(0 <= one <= 100 for one in by_task):
                yield f"by_task, {metric}: expected percent, from 0 to 100"
            elif not _same(accuracy, float(np.mean(by_task))):
                yield f"accuracy, {metric}: {accuracy} is not the mean over its tasks, {np.mean(by_task):.4f}"
        before, gap = axis.reference_accuracy.get(metric), axis.gap.get(metric)
        if gap and (before is None or not _same(gap.mean, _less(before.mean, accuracy))):
            yield f"gap, {metric}: {gap.mean} is not the reference's accuracy minus its own"
        excess, sham = axis.excess.get(metric), axis.placebo_gap.get(metric)
        if excess and (gap is None or sham is None or not _same(excess.mean, _less(gap.mean, sham.mean))):
            yield f"excess, {metric}: {excess.mean} is not the gap minus the placebo's"
    both = [axis.accuracy[metric].mean for metric in METRICS if metric in axis.accuracy]
    if len(both) == 2 and None not in both and both[1] > both[0] + ROUNDING:  # type: ignore[operator]
        yield f"the worst class, {both[1]}, does better than all classes together, {both[0]}"
    for by, rank in axis.rank.items():
        if not 1 <= rank.best <= rank.worst <= rank.of:
            yield f"rank by {by}: {rank} cannot be"


def _wrong_number(number: CardNumber, least: float, most: float) -> str | None:
    mean = number.mean
    if mean is not None and not least - ROUNDING <= mean <= most + ROUNDING:
        return f"expected a number from {least} to {most}, found {mean}"
    if (
        mean is not None
        and number.low is not None
        and number.high is not None
        and not number.low <= mean <= number.high
    ):
        return f"{mean} is outside of its interval, {number.low} to {number.high}"
    if not 0 < number.level < 1:
        return f"expected a level between 0 and 1, found {number.level}"
    if any(one is not None and one < 0 for one in (number.variance, number.uncertainty, number.task_variance)):
        return "a variance is negative"
    if number.variance and number.uncertainty and number.low is not None and number.high is not None:
        return _other_interval(number, number.low, number.high)
    return None


def _other_interval(number: CardNumber, low: float, high: float) -> str | None:
    """What is wrong with an interval that does not follow from the variance beside it."""
    try:
        expected = number.estimate.interval(number.covers, number.level)
    except (ArithmeticError, ValueError):  # numbers beyond what can be computed with
        return f"no interval follows from the variance {number.variance}"
    slack = ROUNDING + 1e-6 * abs(expected.high - expected.low)
    if abs(low - expected.low) <= slack and abs(high - expected.high) <= slack:
        return None
    return f"the interval {low} to {high} does not follow from its variance: {expected.low:.4f} to {expected.high:.4f}"


def _other_tasks(axis: CardAxis, known: Mapping[str, TaskSet]) -> Iterator[str]:
    """Task sets that are not there, or of another size."""
    for role, given in (("tasks", axis.tasks), ("reference", axis.reference), ("placebo", axis.placebo)):
        if given is None:
            continue
        found = known.get(given.digest)
        if found is None:
            yield f"its {role}, the task set {given.digest}, is none of {', '.join(known)}"
        elif len(found) != given.tasks:
            yield f"its {role}, {given.digest}, are {len(found):,} tasks, it says {given.tasks:,}"
    own = known.get(axis.tasks.digest)
    if own is not None:
        for name, size, said in zip(("way", "shot"), own.common_sizes()[:2], (axis.way, axis.shot), strict=True):
            if size is not None and size != said:
                yield f"{name}: expected {size} as in its task set, found {said}"


def _other_accuracy(axis: CardAxis, tasks: TaskSet, recomputation: Recomputation, method: Method) -> Iterator[str]:
    """The first task whose accuracy is another; of a card without these, the mean."""
    chosen = recomputation.chosen(tasks)
    results = recomputation.results(chosen, [method], 0)
    counts = results.counts(results.methods[0])
    found: dict[str, FloatArray] = {"acc": counts.accuracy_by_task(), "wacc": counts.worst_by_task()}
    numbers = tasks.task_of_row[tasks.starts[:-1]]
    places = np.searchsorted(numbers, chosen.task_of_row[chosen.starts[:-1]])
    for metric in METRICS:
        if metric not in axis.by_task:
            if len(chosen) == len(tasks) and not _same(axis.accuracy[metric].mean, float(found[metric].mean())):
                yield f"accuracy, {metric}: {axis.accuracy[metric].mean}, computed anew {found[metric].mean():.4f}"
            continue
        stated = np.asarray(axis.by_task[metric])[places]
        wrong = np.abs(stated - found[metric]) > ROUNDING
        if wrong.any():
            first = int(np.argmax(wrong))
            yield (
                f"task {numbers[places[first]]}: {metric} {stated[first]:.1f}, computed anew {found[metric][first]:.1f}"
                f"; {int(wrong.sum()):,} of {len(chosen):,} tasks differ"
            )
            return


def _same(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= ROUNDING


def _less(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second
