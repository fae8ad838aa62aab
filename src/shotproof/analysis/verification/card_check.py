"""Whether a card is possible in itself and on its task sets, and whether its accuracies come out again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shotproof.analysis.verification.results_check import Recomputation
from shotproof.comparison.card import Card, CardAxis
from shotproof.comparison.card_contradictions import ROUNDING, axis_contradictions, same_number, twice
from shotproof.core.arrays import FloatArray
from shotproof.learners.method import Method, make_method
from shotproof.results.evaluated import METRICS
from shotproof.tasks.taskset import TaskSet


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
    yield from twice(card)
    known = {one.digest: one for one in tasks}
    for axis in card.axes:
        problems = list(axis_contradictions(axis))
        if tasks:
            problems += _other_tasks(axis, known)
        if recomputation is not None and not problems and axis.tasks.digest in known:
            problems += _other_accuracy(
                axis, known[axis.tasks.digest], recomputation, method or make_method(card.method)
            )
        yield from (f"{axis.name}: {problem}" for problem in problems)


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
            stated = axis.estimates["accuracy"][metric].mean
            if len(chosen) == len(tasks) and not same_number(stated, float(found[metric].mean())):
                yield f"accuracy, {metric}: {stated}, computed anew {found[metric].mean():.4f}"
            continue
        by_task = np.asarray(axis.by_task[metric])[places]
        wrong = np.abs(by_task - found[metric]) > ROUNDING
        if wrong.any():
            first = int(np.argmax(wrong))
            yield (
                f"task {numbers[places[first]]}: {metric} {by_task[first]:.1f}, "
                f"computed anew {found[metric][first]:.1f}; {int(wrong.sum()):,} of {len(chosen):,} tasks differ"
            )
            return
