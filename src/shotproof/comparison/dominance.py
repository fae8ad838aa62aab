"""Which of thousands of numbers are conclusively above which, after Holm's correction for the number of pairs.

The same tests as in `stats/pairs.py`, a block of pairs at a time. Numbers with values by task are compared task by
task; others, and what new data adds to a number, are taken as independent, with the fewest degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from shotproof.core.arrays import BoolArray, FloatArray, IntArray
from shotproof.stats.block import ByTask
from shotproof.stats.intervals import Estimate, Interval, Spread

BLOCK = 256  # rows of pairs that are looked at together
CONSTANT = 1e-12  # a variance below this share of both parts' squares is rounding


NOTHING = Spread(0.0, 0.0)
OWN_TASKS = ("the axis's own tasks",)  # all accuracies on an axis are on the same tasks


@dataclass(frozen=True)
class Comparable:
    """A number with its estimate.

    by_task: the values by task whose means add up to it, where they are known
    of_data: what the estimate's variance has beyond that over tasks
    """

    estimate: Estimate
    by_task: ByTask = field(default_factory=dict)
    of_data: Spread = NOTHING

    @classmethod
    def of_axis(cls, number: Interval, tasks: int, by_task: Sequence[float] | FloatArray = ()) -> Comparable:
        """A number of a card's axis with this many tasks, and of an accuracy the values by task."""
        values: ByTask = {OWN_TASKS: np.array(by_task)} if len(by_task) else {}
        if number.covers == "sampler":
            return cls(number.estimate, values)
        if number.variance is None or number.uncertainty is None or number.task_variance is None:
            return cls(number.estimate)
        of_tasks = 2 * number.task_variance**2 / max(tasks - 1, 1)
        data = Spread(max(number.variance - number.task_variance, 0.0), max(number.uncertainty - of_tasks, 1e-300))
        return cls(number.estimate, values, data)

    @property
    def can_be_ranked(self) -> bool:
        """Whether anything tells it from others."""
        return not np.isnan(self.estimate.mean) and (self.estimate.spread is not None or bool(self.by_task))


def above(numbers: Sequence[Comparable], level: float = 0.95) -> BoolArray:
    """Which number is conclusively above which other.

    Args:
        numbers: all that are compared; all can be ranked
        level: of the tests, over all pairs together

    Returns:
        [n, n]: whether the number of the row is above that of the column.

    Example:
        >>> from shotproof.stats.intervals import Spread
        >>> above([Comparable(Estimate(mean, Spread(1.0, 0.02))) for mean in (80.0, 70.0, 79.0)]).astype(int).tolist()
        [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    """
    from scipy import special

    count, alpha = len(numbers), 1 - level
    mean = np.array([one.estimate.mean for one in numbers])
    spreads = _Spreads(numbers)
    most = max(count * (count - 1) // 2, 1)
    least = special.ndtri(1 - alpha / 2)  # nearer to zero than this, no number of degrees of freedom is conclusive
    tested, places, p_values = 0, [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for start in range(0, count, BLOCK):
        rows, columns = np.arange(start, min(start + BLOCK, count)), np.arange(start, count)
        variance, freedom, third = spreads.between(rows, columns)
        known = ~np.isnan(variance) & (columns > rows[:, None])
        tested += int(known.sum())
        with np.errstate(invalid="ignore"):
            x = (mean[rows, None] - mean[columns]) / np.sqrt(variance)
            if third.any():
                skewness = third / variance**1.5
                x += skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 6
            x = np.abs(x, out=x)
            far = np.flatnonzero(known & (x >= least))
        x, freedom = x.flat[far], freedom.flat[far]
        # Beyond this, a pair is conclusive however many there are: its p-value need not be known.
        certain = special.stdtrit(freedom.min(), 1 - alpha / (2 * most)) if len(far) else 0.0
        near = x < certain
        p = np.zeros(len(far))
        p[near] = 2 * special.stdtr(freedom[near], -x[near])
        row, column = np.divmod(far[p <= alpha], len(columns))
        places.append((row + start) * count + column + start)
        p_values.append(p[p <= alpha])
    conclusive = np.concatenate(places)[_holm(np.concatenate(p_values), tested, alpha)]
    found = np.zeros((count, count), dtype=np.bool_)
    first, second = np.divmod(conclusive, max(count, 1))
    higher = mean[first] > mean[second]
    found[np.where(higher, first, second), np.where(higher, second, first)] = True
    return found


def difference(first: Comparable, second: Comparable) -> Estimate:
    """The first number minus the second: task by task where both have values of the same tasks, else as independent.

    What new data adds to either is taken as independent too, which makes the interval wide rather than narrow; and no
    difference is known better than the worse known of its parts.
    """
    mean = first.estimate.mean - second.estimate.mean
    variance, freedom, third = (
        float(one[0, 0]) for one in _Spreads([first, second]).between(np.array([0]), np.array([1]))
    )
    if np.isnan(variance):
        return Estimate(mean, None, first.estimate.refused or second.estimate.refused or "no task differs")
    return Estimate(mean, Spread(variance, 2 * variance**2 / freedom, third))


def _holm(p_values: FloatArray, tested: int, alpha: float) -> BoolArray:
    """Which p-values are small enough, of `tested` ones; those above alpha need not be given."""
    ordered = np.sort(p_values)
    failing = np.flatnonzero((tested - np.arange(len(ordered))) * ordered > alpha)
    return p_values < ordered[failing[0]] if len(failing) else np.ones(len(p_values), dtype=np.bool_)


class _Spreads:
    """The spreads of all differences: variance, degrees of freedom and third cumulant; NaN where there is none."""

    def __init__(self, numbers: Sequence[Comparable]) -> None:
        given = [one.estimate.spread for one in numbers]
        nan = float("nan")
        self.variance = np.array([nan if one is None else one.variance for one in given])
        self.freedom = np.array([nan if one is None else one.freedom for one in given])
        self.third = np.array([nan if one is None else one.third for one in given])
        self.paired = np.array([bool(one.by_task) for one in numbers])
        data = [one.of_data for one in numbers]
        self.of_data = np.array([one.variance for one in data]), np.array([one.uncertainty for one in data])
        self.freedom_of_data = np.array([one.freedom if one.variance else np.inf for one in data])
        self.centered = [_centered(key, [one.by_task for one in numbers]) for key in _keys(numbers)]

    def between(self, rows: IntArray, columns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Those of some numbers minus others: [rows, columns] each."""
        variance = self.variance[rows, None] + self.variance[columns]
        freedom = np.fmin(self.freedom[rows, None], self.freedom[columns])
        third = self.third[rows, None] - self.third[columns]
        both = self.paired[rows, None] & self.paired[columns]
        if both.any():
            found, uncertainty = (
                over_tasks + of_data[rows, None] + of_data[columns]
                for over_tasks, of_data in zip(self._task_by_task(rows, columns), self.of_data, strict=True)
            )
            fewest = np.fmin(self.freedom_of_data[rows, None], self.freedom_of_data[columns])[both]
            variance[both], third[both] = found[both], 0.0
            freedom[both] = np.maximum(np.fmin(2 * found[both] ** 2 / uncertainty[both], fewest), 1.0)
        return variance, freedom, third

    def _task_by_task(self, rows: IntArray, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """The variance and its uncertainty, as of the mean of differences; NaN where these are constant."""
        variance = np.zeros((len(rows), len(columns)))
        uncertainty = np.zeros_like(variance)
        for values, squares in self.centered:
            tasks = values.shape[1]
            of_both = squares[rows, None] + squares[columns]
            part = np.maximum(of_both - 2 * values[rows] @ values[columns].T, 0.0)
            part[(part <= CONSTANT * of_both) & (of_both > 0)] = np.nan  # where neither has such tasks, it is zero
            part /= max(tasks * (tasks - 1), 1)
            variance += part
            uncertainty += 2 * part**2 / max(tasks - 1, 1)
        variance[variance == 0] = np.nan
        return variance, uncertainty


def _keys(numbers: Sequence[Comparable]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(key for one in numbers for key in one.by_task))


def _centered(key: tuple[str, ...], given: Sequence[ByTask]) -> tuple[FloatArray, FloatArray]:
    """Values less their mean, [numbers, tasks], zeros of those without; and the sums of their squares."""
    tasks = next(len(one[key]) for one in given if key in one)
    values = np.zeros((len(given), tasks))
    for row, one in enumerate(given):
        if key in one:
            values[row] = one[key] - one[key].mean()
    return values, np.einsum("nt,nt->n", values, values)
