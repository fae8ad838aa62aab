"""Whether a method has put nearly all queries of a task into few of its classes."""

from __future__ import annotations

import numpy as np

from shotproof.core.arrays import IntArray
from shotproof.evaluation.batches import Part
from shotproof.learners.items import NO_CLASS

# A task with fewer queries per class than this may see few classes answered by chance.
FEWEST_QUERIES = 3
# From this share of collapsed tasks on, it is told.
TOLD = 0.1


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
