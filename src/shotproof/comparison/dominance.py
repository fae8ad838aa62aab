"""Pairwise comparison of thousands of numbers, after Holm's correction for the number of pairs.

The tests are those of `stats/pairs.py`, on a block of pairs at a time. Numbers with values by task are compared task by
task; other numbers, and the variance due to new data, are treated as independent, with the fewest degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from shotproof.core.arrays import BoolArray, FloatArray, IntArray
from shotproof.stats.block import ByTask
from shotproof.stats.intervals import Estimate, Interval, Spread

BLOCK = 256  # rows of pairs that are tested together
CONSTANT = 1e-12  # a variance below this share of both sums of squares is rounding error


NOTHING = Spread(0.0, 0.0)
OWN_TASKS = ("the axis's own tasks",)  # all accuracies on an axis are on the same tasks


@dataclass(frozen=True)
class Comparable:
    """Number with its estimate.

    by_task: values by task whose means add up to the number, if they are known
    of_data: part of the estimate's variance beyond that over tasks
    """

    estimate: Estimate
    by_task: ByTask = field(default_factory=dict)
    of_data: Spread = NOTHING

    @classmethod
    def of_axis(cls, number: Interval, tasks: int, by_task: Sequence[float] | FloatArray = ()) -> Comparable:
        """Build from a number of a card's axis, its number of tasks and, for an accuracy, the values by task."""
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
        """Return whether the number can be ranked."""
        return not np.isnan(self.estimate.mean) and (self.estimate.spread is not None or bool(self.by_task))


def above(numbers: Sequence[Comparable], level: float = 0.95) -> BoolArray:
    """Test which number is conclusively above which other.

    Args:
        numbers: numbers to compare, all of which can be ranked
        level: level of the tests, over all pairs together

    Returns:
        [n, n]: whether the number of the row is conclusively above that of the column.

    Example:
        >>> from shotproof.stats.intervals import Spread
        >>> above([Comparable(Estimate(mean, Spread(1.0, 0.02))) for mean in (80.0, 70.0, 79.0)]).astype(int).tolist()
        [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    """
    from scipy import special

    count, alpha = len(numbers), 1 - level
    mean = np.array([number.estimate.mean for number in numbers])
    spreads = _Spreads(numbers)
    max_tests = max(count * (count - 1) // 2, 1)
    smallest = special.ndtri(1 - alpha / 2)  # closer to zero, no number of degrees of freedom is conclusive
    tested, positions, p_values = 0, [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for start in range(0, count, BLOCK):
        rows, columns = np.arange(start, min(start + BLOCK, count)), np.arange(start, count)
        variance, freedom, third = spreads.between(rows, columns)
        has_variance = ~np.isnan(variance) & (columns > rows[:, None])
        tested += int(has_variance.sum())
        with np.errstate(invalid="ignore"):
            x = (mean[rows, None] - mean[columns]) / np.sqrt(variance)
            if third.any():
                skewness = third / variance**1.5
                x += skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 6
            x = np.abs(x, out=x)
            far = np.flatnonzero(has_variance & (x >= smallest))
        x, freedom = x.flat[far], freedom.flat[far]
        # Beyond this, a pair is conclusive whatever the number of pairs: its p-value is not needed.
        certain = special.stdtrit(freedom.min(), 1 - alpha / (2 * max_tests)) if len(far) else 0.0
        uncertain = x < certain
        p = np.zeros(len(far))
        p[uncertain] = 2 * special.stdtr(freedom[uncertain], -x[uncertain])
        row, column = np.divmod(far[p <= alpha], len(columns))
        positions.append((row + start) * count + column + start)
        p_values.append(p[p <= alpha])
    conclusive = np.concatenate(positions)[_holm(np.concatenate(p_values), tested, alpha)]
    is_above = np.zeros((count, count), dtype=np.bool_)
    first, second = np.divmod(conclusive, max(count, 1))
    higher = mean[first] > mean[second]
    is_above[np.where(higher, first, second), np.where(higher, second, first)] = True
    return is_above


def difference(first: Comparable, second: Comparable) -> Estimate:
    """Subtract the second number from the first, task by task if both have values on the same tasks.

    Otherwise they are treated as independent, as is the variance due to new data, which makes the interval wider rather
    than narrower. No difference has more degrees of freedom than either of its parts.
    """
    mean = first.estimate.mean - second.estimate.mean
    variance, freedom, third = (
        float(moment[0, 0]) for moment in _Spreads([first, second]).between(np.array([0]), np.array([1]))
    )
    if np.isnan(variance):
        return Estimate(mean, None, first.estimate.refused or second.estimate.refused or "no task differs")
    return Estimate(mean, Spread(variance, 2 * variance**2 / freedom, third))


def _holm(p_values: FloatArray, tested: int, alpha: float) -> BoolArray:
    """Return which p-values are conclusive among `tested` ones; those above alpha may be omitted."""
    ordered = np.sort(p_values)
    failing = np.flatnonzero((tested - np.arange(len(ordered))) * ordered > alpha)
    return p_values < ordered[failing[0]] if len(failing) else np.ones(len(p_values), dtype=np.bool_)


class _Spreads:
    """Spreads of all differences: variance, degrees of freedom and third cumulant; NaN if there is none."""

    def __init__(self, numbers: Sequence[Comparable]) -> None:
        spreads = [number.estimate.spread for number in numbers]
        nan = float("nan")
        self.variance = np.array([nan if spread is None else spread.variance for spread in spreads])
        self.freedom = np.array([nan if spread is None else spread.freedom for spread in spreads])
        self.third = np.array([nan if spread is None else spread.third for spread in spreads])
        self.paired = np.array([bool(number.by_task) for number in numbers])
        data = [number.of_data for number in numbers]
        self.of_data = np.array([spread.variance for spread in data]), np.array([spread.uncertainty for spread in data])
        self.freedom_of_data = np.array([spread.freedom if spread.variance else np.inf for spread in data])
        self.centered = [_center_values(key, [number.by_task for number in numbers]) for key in _keys(numbers)]

    def between(self, rows: IntArray, columns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the spreads of the numbers of the rows minus those of the columns: [rows, columns] each."""
        variance = self.variance[rows, None] + self.variance[columns]
        freedom = np.fmin(self.freedom[rows, None], self.freedom[columns])
        third = self.third[rows, None] - self.third[columns]
        is_paired = self.paired[rows, None] & self.paired[columns]
        if is_paired.any():
            paired_variance, uncertainty = (
                over_tasks + of_data[rows, None] + of_data[columns]
                for over_tasks, of_data in zip(self._task_by_task(rows, columns), self.of_data, strict=True)
            )
            fewest = np.fmin(self.freedom_of_data[rows, None], self.freedom_of_data[columns])[is_paired]
            variance[is_paired], third[is_paired] = paired_variance[is_paired], 0.0
            satterthwaite = 2 * paired_variance[is_paired] ** 2 / uncertainty[is_paired]
            freedom[is_paired] = np.maximum(np.fmin(satterthwaite, fewest), 1.0)
        return variance, freedom, third

    def _task_by_task(self, rows: IntArray, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Compute the variance of the mean difference and its uncertainty; NaN if the differences are constant."""
        variance = np.zeros((len(rows), len(columns)))
        uncertainty = np.zeros_like(variance)
        for values, squares in self.centered:
            tasks = values.shape[1]
            total = squares[rows, None] + squares[columns]
            part = np.maximum(total - 2 * values[rows] @ values[columns].T, 0.0)
            part[(part <= CONSTANT * total) & (total > 0)] = np.nan  # zero if neither number has such tasks
            part /= max(tasks * (tasks - 1), 1)
            variance += part
            uncertainty += 2 * part**2 / max(tasks - 1, 1)
        variance[variance == 0] = np.nan
        return variance, uncertainty


def _keys(numbers: Sequence[Comparable]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(key for number in numbers for key in number.by_task))


def _center_values(key: tuple[str, ...], by_tasks: Sequence[ByTask]) -> tuple[FloatArray, FloatArray]:
    """Return the values minus their mean, [numbers, tasks], zeros if a number has none, and their sums of squares."""
    tasks = next(len(by_task[key]) for by_task in by_tasks if key in by_task)
    values = np.zeros((len(by_tasks), tasks))
    for row, by_task in enumerate(by_tasks):
        if key in by_task:
            values[row] = by_task[key] - by_task[key].mean()
    return values, np.einsum("nt,nt->n", values, values)
