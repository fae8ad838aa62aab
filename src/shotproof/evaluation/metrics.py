"""Metrics on counts: accuracy, worst-class accuracy, and agreement of the rankings that they give.

All accuracies are in percent, all differences between them in percentage points: in tables, pages, JSON and here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from shotproof.core.arrays import FloatArray as FloatArray
from shotproof.core.arrays import IntArray


@dataclass(frozen=True)
class Counts:
    """Queries and correct answers per class of a task, ordered by task: three arrays of one length.

    A class without queries has no accuracy and takes no part in its task's; every task has a query.
    """

    task: IntArray
    n_query: IntArray
    n_correct: IntArray

    def accuracy_by_task(self) -> FloatArray:
        """The mean over a task's classes of M_c, the accuracy on class c's queries, in percent: [tasks]."""
        starts = self._starts()
        asked = np.add.reduceat(self.n_query > 0, starts, dtype=np.int64)
        means: FloatArray = np.add.reduceat(self.accuracy(0.0), starts) / asked
        return means

    def worst_by_task(self) -> FloatArray:
        """The lowest M_c of each task (FewSTAB, Eq. 2), in percent: [tasks]."""
        worst: FloatArray = np.minimum.reduceat(self.accuracy(100.0), self._starts())
        return worst

    def accuracy(self, without: float = np.nan) -> FloatArray:
        """M_c of each entry, in percent, and a stand-in where the class has no query: [entries]."""
        return np.where(self.n_query > 0, 100 * self.n_correct / np.maximum(self.n_query, 1), without)

    def _starts(self) -> IntArray:
        """The first entry of each task."""
        return np.flatnonzero(np.diff(self.task, prepend=self.task[0] - 1))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation between the orders that two metrics give to methods; NaN where one is constant."""
    if len(first) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return float("nan")
    return float(stats.spearmanr(first, second).statistic)


def average_drop(random: Sequence[float], biased: Sequence[float]) -> float:
    """The mean over methods of wAcc-R - wAcc-A (FewSTAB, Table 5)."""
    return float(np.mean(np.asarray(random) - np.asarray(biased)))
