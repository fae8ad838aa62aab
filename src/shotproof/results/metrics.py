"""Metrics computed from counts: accuracy, worst-class accuracy, and the agreement of their rankings.

All accuracies are in percent, all differences between them in percentage points: in tables, pages, JSON and here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shotproof.core.arrays import FloatArray as FloatArray
from shotproof.core.arrays import IntArray

FEWEST_RANKED = 4  # methods that a rank correlation needs


@dataclass(frozen=True)
class Counts:
    """Numbers of queries and of correct answers per class of a task, ordered by task: three arrays of one length.

    A class without queries has no accuracy and does not enter that of its task; every task has a query.
    """

    task: IntArray
    n_query: IntArray
    n_correct: IntArray

    def accuracy_by_task(self) -> FloatArray:
        """Average M_c, the accuracy on class c's queries, over the classes of each task, in percent: [tasks]."""
        starts = self._starts()
        queried_classes = np.add.reduceat(self.n_query > 0, starts, dtype=np.int64)
        means: FloatArray = np.add.reduceat(self.accuracy(0.0), starts) / queried_classes
        return means

    def worst_by_task(self) -> FloatArray:
        """Return the lowest M_c of each task (FewSTAB, Eq. 2), in percent: [tasks]."""
        worst: FloatArray = np.minimum.reduceat(self.accuracy(100.0), self._starts())
        return worst

    def accuracy(self, default: float = np.nan) -> FloatArray:
        """Compute M_c of each entry, in percent, or the default if the class has no query: [entries]."""
        return np.where(self.n_query > 0, 100 * self.n_correct / np.maximum(self.n_query, 1), default)

    def guessed_accuracy_by_task(self) -> FloatArray:
        """Compute the expected accuracy of guessing, 100 / way, in percent: [tasks]."""
        starts = self._starts()
        ways = np.diff(np.append(starts, len(self.task)))
        return np.asarray(100 / ways, dtype=np.float64)

    def guessed_worst_by_task(self) -> FloatArray:
        """Compute the expectation of the lowest M_c under guessing, in percent: [tasks].

        Each query is answered correctly with probability 1 / way, independently of the others, so M_c is binomial and
        the expectation of the lowest is exact: the sum of P(all M_c >= x) over the steps of x.
        """
        queries_by_task = np.split(self.n_query, self._starts()[1:])
        shapes = [(len(queries), tuple(sorted(queries[queries > 0].tolist()))) for queries in queries_by_task]
        expected = {shape: _guessed_worst(*shape) for shape in set(shapes)}
        return np.array([expected[shape] for shape in shapes])

    def _starts(self) -> IntArray:
        """Return the first entry of each task."""
        return np.flatnonzero(np.diff(self.task, prepend=self.task[0] - 1))


def _guessed_worst(way: int, queries: Sequence[int]) -> float:
    """Compute the expectation of the lowest class accuracy under guessing, in percent, from the queries per class."""
    from scipy import special

    steps = np.unique(np.concatenate([np.arange(1, count + 1) / count for count in queries]))
    reached = np.ones(len(steps))
    for count in queries:
        least = np.ceil(steps * count - 1e-9)  # correct answers that reach the step
        reached *= special.bdtrc(least - 1, count, 1 / way)
    return float(100 * (np.diff(steps, prepend=0.0) * reached).sum())


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Compute Spearman's correlation between two metrics of the same methods.

    NaN if one is constant, or if there are fewer than 4 methods: two are always in the same order or in the opposite
    one, and three are in the same order by chance once in six times.
    """
    if len(first) < FEWEST_RANKED or len(set(first)) == 1 or len(set(second)) == 1:
        return math.nan
    from scipy import stats

    return float(stats.spearmanr(first, second).statistic)


def average_drop(random: Sequence[float], biased: Sequence[float]) -> float:
    """Average wAcc-R - wAcc-A over methods (FewSTAB, Table 5)."""
    return float(np.mean(np.asarray(random) - np.asarray(biased)))
