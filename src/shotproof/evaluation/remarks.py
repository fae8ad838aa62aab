"""What a user should know of each method's answers: warnings, answers that name no class, collapsed tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shotproof.core.arrays import IntArray
from shotproof.evaluation.batches import Part
from shotproof.learners.items import NO_CLASS
from shotproof.learners.method import Method

# A task with fewer queries per class than this may see few classes answered by chance.
FEWEST_QUERIES = 3
# From this share of collapsed tasks on, it is told.
TOLD = 0.1


@dataclass(frozen=True)
class Remark:
    """What there is to say of a method's answers.

    messages: in words, for the user
    counts: how often it warned, queries without an answer, and tasks that it put into few classes
    """

    messages: list[str]
    counts: tuple[int, int, int]


def remarks_on(
    methods: Sequence[Method], query: Part, predicted: IntArray, warned: Sequence[Sequence[str]]
) -> list[Remark]:
    """Find what there is to say of each method.

    Args:
        methods: those that were evaluated
        query: the queries of all tasks
        predicted: the class of each query by each method, [methods, queries]
        warned: what each method warned of
    """
    collapsed, counted = collapsed_tasks(query, predicted)
    remarks = []
    for method, labels, texts, few in zip(methods, predicted, warned, collapsed.tolist(), strict=True):
        messages, name, unanswered = [], f"method '{method.spelling}'", int((labels == NO_CLASS).sum())
        if texts:
            times = f"{len(texts)} times" if len(texts) > 1 else "once"
            messages.append(f"{name} warned {times}: {texts[0]}")
        if unanswered:
            what = f"{unanswered:,} of {len(labels):,} answers name none of the classes, and count as wrong"
            messages.append(f"{name}: {what}")
        if method.collapse_help and few >= max(TOLD * counted, 1):
            what = f"in {few:,} of {counted:,} tasks it answered with at most half of the classes"
            messages.append(f"{name}: {what}; {method.collapse_help}")
        remarks.append(Remark(messages, (len(texts), unanswered, few)))
    return remarks


def collapsed_tasks(query: Part, predicted: IntArray) -> tuple[IntArray, int]:
    """In how many tasks each method answers with at most half of the classes that have queries.

    Args:
        query: the queries of all tasks
        predicted: the class of each query by each method, [methods, queries]

    Returns:
        The numbers, [methods], and how many tasks there are to go by: those with two classes or more that have queries,
        and three queries per such class or more.
    """
    size = np.diff(query.first)
    task = np.repeat(np.arange(len(size)), size)
    width = max(int(query.slot.max(initial=0)), int(predicted.max(initial=0))) + 1
    asked = _distinct(task, query.slot, len(size), width)
    counted = (asked > 1) & (size >= FEWEST_QUERIES * asked)
    found = []
    for of_method in predicted:
        there = of_method != NO_CLASS
        answered = _distinct(task[there], of_method[there], len(size), width)
        found.append(int((counted & (answered <= asked // 2)).sum()))
    return np.array(found, dtype=np.int64), int(counted.sum())


def _distinct(task: IntArray, label: IntArray, tasks: int, width: int) -> IntArray:
    """How many different labels each task has."""
    pairs = task * width + label.astype(np.int64)
    there: IntArray = (np.bincount(pairs, minlength=tasks * width).reshape(tasks, width) > 0).sum(1)
    return there
