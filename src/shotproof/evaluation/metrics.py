"""Metrics on counts: accuracy, worst-class accuracy, and agreement of the rankings that they give.

All accuracies are shares between 0 and 1; tables and pages show them in percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """Queries and correct answers a class of a task, ordered by task: three arrays of one length.

    A class without queries has no accuracy and takes no part in its task's; every task has a query.
    """

    task: npt.NDArray[np.int64]
    n_query: npt.NDArray[np.int64]
    n_correct: npt.NDArray[np.int64]

    def accuracy_by_task(self) -> FloatArray:
        """The mean over a task's classes of M_c, the accuracy on class c's queries: [tasks]."""
        starts = self._starts()
        asked = np.add.reduceat(self.n_query > 0, starts, dtype=np.int64)
        means: FloatArray = np.add.reduceat(self._share(0.0), starts) / asked
        return means

    def worst_by_task(self) -> FloatArray:
        """The lowest M_c of each task (FewSTAB, Eq. 2): [tasks]."""
        worst: FloatArray = np.minimum.reduceat(self._share(1.0), self._starts())
        return worst

    def _share(self, without: float) -> FloatArray:
        """M_c of each entry, and a stand-in where the class has no query."""
        return np.where(self.n_query > 0, self.n_correct / np.maximum(self.n_query, 1), without)

    def _starts(self) -> npt.NDArray[np.int64]:
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
