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

    def _starts(self) -> npt.NDArray[np.int64]:
        """The first entry of each task."""
        return np.flatnonzero(np.diff(self.task, prepend=self.task[0] - 1))


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
    """Student's t interval of the mean over tasks: it covers a new draw of tasks from the same items, no more.

    One task has no interval: its bounds are NaN. Accuracies near 0 or 1 make it too narrow.
    """
    array = np.asarray(values, dtype=np.float64)
    return _student(float(array.mean()), _variance_of_mean(array), len(array) - 1, level)


def gap_interval(random: npt.ArrayLike, biased: npt.ArrayLike, level: float = 0.95) -> Interval:
    """The difference of two means over different tasks, random minus biased, with Welch's t interval."""
    a, b = np.asarray(random, dtype=np.float64), np.asarray(biased, dtype=np.float64)
    of_a, of_b = _variance_of_mean(a), _variance_of_mean(b)
    variance, spread = of_a + of_b, of_a**2 / max(len(a) - 1, 1) + of_b**2 / max(len(b) - 1, 1)
    freedom = variance**2 / spread if spread > 0 else 1.0  # where nothing varies, any will do
    return _student(float(a.mean() - b.mean()), variance, freedom, level)


def _variance_of_mean(values: FloatArray) -> float:
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else float("nan")


def _student(mean: float, variance: float, freedom: float, level: float) -> Interval:
    """Student's t interval of an estimate with this variance; NaN where the variance is not known."""
    half = float(stats.t.ppf((1 + level) / 2, max(freedom, 1)) * np.sqrt(variance))
    return Interval(mean, mean - half, mean + half, level=level)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's correlation between the orders that two metrics give to methods; NaN where one is constant."""
    if len(first) < 2 or len(set(first)) == 1 or len(set(second)) == 1:
        return float("nan")
    return float(stats.spearmanr(first, second).statistic)


def average_drop(random: Sequence[float], biased: Sequence[float]) -> float:
    """The mean over methods of wAcc-R - wAcc-A (FewSTAB, Table 5)."""
    return float(np.mean(np.asarray(random) - np.asarray(biased)))
