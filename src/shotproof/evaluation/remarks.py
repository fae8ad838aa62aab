"""Remarks on each method's answers: warnings, queries without an answer, collapsed tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shotproof.core.arrays import IntArray
from shotproof.evaluation.batches import Part
from shotproof.learners.items import NO_CLASS
from shotproof.learners.method import Method

# With fewer queries per class, a method may answer with few classes by chance.
FEWEST_QUERIES = 3
# Smallest share of collapsed tasks that is reported.
REPORTED_SHARE = 0.1


@dataclass(frozen=True)
class Remark:
    """Remarks on one method's answers.

    messages: sentences for the user
    counts: number of warnings, of queries without an answer, and of collapsed tasks
    """

    messages: list[str]
    counts: tuple[int, int, int]


def remarks_on(
    methods: Sequence[Method], query: Part, predicted: IntArray, warned: Sequence[Sequence[str]]
) -> list[Remark]:
    """Write the remarks on each method.

    Args:
        methods: methods that were evaluated
        query: queries of all tasks
        predicted: class predicted for each query by each method, [methods, queries]
        warned: warnings of each method
    """
    collapsed_counts, counted = collapsed_tasks(query, predicted)
    remarks = []
    for method, labels, texts, collapsed in zip(methods, predicted, warned, collapsed_counts.tolist(), strict=True):
        messages, name, unanswered = [], f"method '{method.spelling}'", int((labels == NO_CLASS).sum())
        if texts:
            times = f"{len(texts)} times" if len(texts) > 1 else "once"
            messages.append(f"{name} warned {times}: {texts[0]}")
        if unanswered:
            messages.append(
                f"{name}: {unanswered:,} of {len(labels):,} answers name none of the classes, and count as wrong"
            )
        if method.collapse_help and collapsed >= max(REPORTED_SHARE * counted, 1):
            messages.append(
                f"{name}: in {collapsed:,} of {counted:,} tasks it answered with at most half of the classes; "
                f"{method.collapse_help}"
            )
        remarks.append(Remark(messages, (len(texts), unanswered, collapsed)))
    return remarks


def collapsed_tasks(query: Part, predicted: IntArray) -> tuple[IntArray, int]:
    """Count the tasks in which each method answers with at most half of the classes that have queries.

    Args:
        query: queries of all tasks
        predicted: class predicted for each query by each method, [methods, queries]

    Returns:
        The counts, [methods], and the number of tasks considered: those in which at least two classes have queries,
        with at least three queries per such class.
    """
    size = np.diff(query.first)
    task = np.repeat(np.arange(len(size)), size)
    width = max(int(query.slot.max(initial=0)), int(predicted.max(initial=0))) + 1
    query_classes = _count_distinct(task, query.slot, len(size), width)
    is_counted = (query_classes > 1) & (size >= FEWEST_QUERIES * query_classes)
    collapsed = []
    for labels in predicted:
        is_answered = labels != NO_CLASS
        answer_classes = _count_distinct(task[is_answered], labels[is_answered], len(size), width)
        collapsed.append(int((is_counted & (answer_classes <= query_classes // 2)).sum()))
    return np.array(collapsed, dtype=np.int64), int(is_counted.sum())


def _count_distinct(task: IntArray, label: IntArray, tasks: int, width: int) -> IntArray:
    """Count the different labels of each task."""
    pairs = task * width + label.astype(np.int64)
    counts: IntArray = (np.bincount(pairs, minlength=tasks * width).reshape(tasks, width) > 0).sum(1)
    return counts
