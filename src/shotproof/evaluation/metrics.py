"""Metrics on counts: accuracy, worst-class accuracy, the gap between two task sets, agreement of rankings.

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
    """Queries and correct answers a class of a task, ordered by task: three arrays of one length."""

    task: npt.NDArray[np.int64]
    n_query: npt.NDArray[np.int64]
    n_correct: npt.NDArray[np.int64]

    def _starts(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(np.diff(self.task, prepend=self.task[0] - 1))

    def accuracy_by_task(self) -> FloatArray:
        """The mean over a task's classes of M_c, the accuracy on class c's queries: [tasks]."""
        starts = self._starts()
        ways = np.diff(np.append(starts, len(self.task)))
        means: FloatArray = np.add.reduceat(self.n_correct / self.n_query, starts) / ways
        return means

    def worst_by_task(self) -> FloatArray:
        """The lowest M_c of each task (FewSTAB, Eq. 2): [tasks]."""
        worst: FloatArray = np.minimum.reduceat(self.n_correct / self.n_query, self._starts())
        return worst


@dataclass(frozen=True)
class Interval:
    """A mean with its interval; `covers` names what would be drawn again (`sampler`: the tasks, on the same items)."""

    mean: float
    low: float
    high: float
    covers: str = "sampler"
    level: float = 0.95

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def sampler_interval(values: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Student's t interval of the mean over tasks. It covers a new draw of tasks from the same items, no more."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if len(array) < 2:
        return Interval(mean, float("nan"), float("nan"), level=level)
    half = float(stats.t.ppf((1 + level) / 2, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array)))
    return Interval(mean, mean - half, mean + half, level=level)


def gap_interval(random: npt.ArrayLike, biased: npt.ArrayLike, level: float = 0.95) -> Interval:
    """The difference of two means over different tasks, random minus biased, with Welch's t interval."""
    a, b = np.asarray(random, dtype=np.float64), np.asarray(biased, dtype=np.float64)
    difference = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Interval(difference, float("nan"), float("nan"), level=level)
    if a.std() == 0 and b.std() == 0:
        return Interval(difference, difference, difference, level=level)
    bounds = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
    return Interval(difference, float(bounds.low), float(bounds.high), level=level)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation between the orders that two metrics give to the same methods; NaN where one is constant."""
    if len(first) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return float("nan")
    return float(stats.spearmanr(first, second).statistic)


def average_drop(random: Sequence[float], biased: Sequence[float]) -> float:
    """The mean over methods of wAcc-R - wAcc-A (FewSTAB, Table 5)."""
    return float(np.mean(np.asarray(random) - np.asarray(biased)))
