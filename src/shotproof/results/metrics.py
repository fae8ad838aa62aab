"""Metrics on counts: accuracy, worst-class accuracy, and agreement of the rankings that they give.

All accuracies are in percent, all differences between them in percentage points: in tables, pages, JSON and here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shotproof.core.arrays import FloatArray as FloatArray
from shotproof.core.arrays import IntArray

FEWEST_RANKED = 4  # methods that a rank correlation is given of


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

    def guessed_accuracy_by_task(self) -> FloatArray:
        """What guessing gives on average: 100 / way, in percent: [tasks]."""
        starts = self._starts()
        ways = np.diff(np.append(starts, len(self.task)))
        return np.asarray(100 / ways, dtype=np.float64)

    def guessed_worst_by_task(self) -> FloatArray:
        """The lowest M_c that guessing gives on average, in percent: [tasks].

        Each query is right with probability 1 / way, independently of the others, so M_c is binomial and the
        expectation of the lowest is exact: the sum of P(all M_c >= x) over the steps of x.
        """
        asked = np.split(self.n_query, self._starts()[1:])
        shapes = [(len(one), tuple(sorted(one[one > 0].tolist()))) for one in asked]
        expected = {shape: _guessed_worst(*shape) for shape in set(shapes)}
        return np.array([expected[shape] for shape in shapes])

    def _starts(self) -> IntArray:
        """The first entry of each task."""
        return np.flatnonzero(np.diff(self.task, prepend=self.task[0] - 1))


def _guessed_worst(way: int, queries: Sequence[int]) -> float:
    """The mean of the lowest class accuracy under guessing, in percent, for classes with so many queries."""
    from scipy import special

    steps = np.unique(np.concatenate([np.arange(1, count + 1) / count for count in queries]))
    reached = np.ones(len(steps))
    for count in queries:
        least = np.ceil(steps * count - 1e-9)  # right answers that reach the step
        reached *= special.bdtrc(least - 1, count, 1 / way)
    return float(100 * (np.diff(steps, prepend=0.0) * reached).sum())


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation between the orders that two metrics give to methods.

    NaN if one is constant, or of fewer than 4 methods: two are always in the same order or in the opposite one, and
    three are in the same order by chance once in six times.
    """
    if len(first) < FEWEST_RANKED or len(set(first)) == 1 or len(set(second)) == 1:
        return math.nan
    from scipy import stats

    return float(stats.spearmanr(first, second).statistic)


def average_drop(random: Sequence[float], biased: Sequence[float]) -> float:
    """The mean over methods of wAcc-R - wAcc-A (FewSTAB, Table 5)."""
    return float(np.mean(np.asarray(random) - np.asarray(biased)))
