"""Which classes a classifier takes for which others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from shotproof.analysis.exploration.explored_tasks import NONE, ExploredTasks
from shotproof.core.arrays import IntArray
from shotproof.core.tables import whole_column
from shotproof.evaluation.answers import Answers


@dataclass(frozen=True)
class Confusion:
    """Pairs of classes, those that were confused most often first; arrays of one length.

    truth, answer: the classes, by their codes
    times: how many queries of the one were taken for the other
    of: how many queries of the one were asked in tasks that have the other
    """

    truth: IntArray
    answer: IntArray
    times: IntArray
    of: IntArray


def confusion(tasks: ExploredTasks, answers: Answers, most: int) -> Confusion | None:
    """The pairs that were confused, at most so many; None where the results do not tell what was answered."""
    if answers.answered is None:
        return None
    label, classes = tasks.label.codes, len(tasks.label.names)
    answered = whole_column(answers.answered)
    row = np.repeat(np.arange(len(label)), pc.list_value_length(answered).to_numpy(zero_copy_only=False))
    slot = answered.flatten().to_numpy().astype(np.int64)
    task = np.repeat(np.arange(len(tasks)), np.diff(tasks.starts))[row]
    named = (slot > NONE) & (slot < np.diff(tasks.starts)[task])  # others named none of the task's classes
    pairs = label[row[named]] * classes + label[tasks.starts[task[named]] + slot[named]]
    found, times = np.unique(pairs, return_counts=True)
    order = np.argsort(-times, kind="stable")[:most]
    found, times = found[order], times[order]
    return Confusion(found // classes, found % classes, times, _asked(tasks, answers.counts.n_query, found))


def _asked(tasks: ExploredTasks, queries: IntArray, pairs: IntArray) -> IntArray:
    """How many queries of each pair's first class were asked in tasks that have the second: [pairs]."""
    label, classes = tasks.label.codes, len(tasks.label.names)
    last = np.repeat(tasks.starts[1:], np.diff(tasks.starts))
    order = np.argsort(pairs)
    asked = np.zeros(len(pairs), dtype=np.int64)
    if not len(pairs):
        return asked
    for step in range(1, int(np.diff(tasks.starts).max())):  # every class of a task beside every other one
        first = np.flatnonzero(np.arange(len(label)) + step < last)
        for one, other in ((first, first + step), (first + step, first)):
            codes = label[one] * classes + label[other]
            place = np.minimum(np.searchsorted(pairs, codes, sorter=order), len(pairs) - 1)
            wanted = pairs[order[place]] == codes
            asked += np.bincount(order[place[wanted]], queries[one[wanted]], len(pairs)).astype(np.int64)
    return asked
