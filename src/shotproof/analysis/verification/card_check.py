"""Check of a card: internal consistency, agreement with its task sets, and recomputed accuracies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shotproof.analysis.verification.results_check import Recomputation
from shotproof.comparison.card import Card, CardAxis
from shotproof.comparison.card_contradictions import ROUNDING, axis_contradictions, repeated_axes, same_number
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
    """Yield the problems of a card, in sentences.

    Args:
        card: the card
        tasks: task sets that must include the card's; empty skips this check
        recomputation: how to recompute its accuracies; None skips this
        method: the card's method, already built; None builds it from its spelling
    """
    yield from repeated_axes(card)
    by_digest = {task_set.digest: task_set for task_set in tasks}
    for axis in card.axes:
        problems = list(axis_contradictions(axis))
        if tasks:
            problems += _task_set_problems(axis, by_digest)
        if recomputation is not None and not problems and axis.tasks.digest in by_digest:
            problems += _accuracy_problems(
                axis, by_digest[axis.tasks.digest], recomputation, method or make_method(card.method)
            )
        yield from (f"{axis.name}: {problem}" for problem in problems)


def _task_set_problems(axis: CardAxis, by_digest: Mapping[str, TaskSet]) -> Iterator[str]:
    """Yield the problems of task sets that are missing or have another size."""
    for role, card_tasks in (("tasks", axis.tasks), ("reference", axis.reference), ("placebo", axis.placebo)):
        if card_tasks is None:
            continue
        task_set = by_digest.get(card_tasks.digest)
        if task_set is None:
            yield f"its {role}, task set {card_tasks.digest}, is not among those given: {', '.join(by_digest)}"
        elif len(task_set) != card_tasks.tasks:
            yield (
                f"its {role}: the card states {card_tasks.tasks:,} tasks, task set {card_tasks.digest} has "
                f"{len(task_set):,}"
            )
    axis_task_set = by_digest.get(axis.tasks.digest)
    if axis_task_set is not None:
        for name, size, stated_size in zip(
            ("way", "shot"), axis_task_set.common_sizes()[:2], (axis.way, axis.shot), strict=True
        ):
            if size is not None and size != stated_size:
                yield f"{name}: expected {size} as in its task set, found {stated_size}"


def _accuracy_problems(axis: CardAxis, tasks: TaskSet, recomputation: Recomputation, method: Method) -> Iterator[str]:
    """Yield the first task whose accuracy differs; for a card without accuracies by task, the mean."""
    selected = recomputation.chosen(tasks)
    results = recomputation.results(selected, [method], 0)
    counts = results.counts(results.methods[0])
    recomputed: dict[str, FloatArray] = {"acc": counts.accuracy_by_task(), "wacc": counts.worst_by_task()}
    numbers = tasks.task_of_row[tasks.starts[:-1]]
    positions = np.searchsorted(numbers, selected.task_of_row[selected.starts[:-1]])
    for metric in METRICS:
        if metric not in axis.by_task:
            stated = axis.estimates["accuracy"][metric].mean
            if len(selected) == len(tasks) and not same_number(stated, float(recomputed[metric].mean())):
                yield f"accuracy, {metric}: {stated}, recomputed {recomputed[metric].mean():.4f}"
            continue
        by_task = np.asarray(axis.by_task[metric])[positions]
        wrong = np.abs(by_task - recomputed[metric]) > ROUNDING
        if wrong.any():
            first = int(np.argmax(wrong))
            yield (
                f"task {numbers[positions[first]]}: {metric} {by_task[first]:.1f}, "
                f"recomputed {recomputed[metric][first]:.1f}; {int(wrong.sum()):,} of {len(selected):,} tasks differ"
            )
            return
