"""Intervals that state what would be drawn again.

An `Estimate` is a mean with its `Spread`; an `Interval` is what a reader sees. The spreads of independent sources add
up, and their degrees of freedom combine as in Welch and Satterthwaite, so the same rule serves means over tasks,
differences between methods, gaps between task sets, and the effect of new images or classes.

Accuracies are in percent, differences between them in points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import InputError, UnknownName
from shotproof.core.nouns import noun, nouns

FloatArray = npt.NDArray[np.float64]
IntervalName = Literal["sampler", "depletion", "images", "classes"]

if TYPE_CHECKING:
    Number = float
else:
    Number = float | None  # null in JSON is NaN in memory

_MEANING: dict[IntervalName, str] = {
    "sampler": "New tasks drawn from the same {items}; it says nothing about new {items} or new classes.",
    "depletion": "New tasks, on tasks that never share {an_item}: valid for new {items} too, but wider than necessary.",
    "images": "New {items} of the same classes, and new tasks.",
    "classes": "New classes with new {items}, and new tasks.",
}

# A standard deviation below this share of the mean is rounding error: the values are constant.
ROUNDING = 1e-12
MOST = 20.0  # factor for tasks or data; if more is needed, the difference is considered too small to show


@dataclass(frozen=True)
class Interval:
    """Number with its interval and the moments behind it, as used by comparisons, cards and leaderboards.

    mean: null if there is no number, such as a share of skill for a classifier without skill
    low, high: null if there is no interval; `refused` states why
    covers: what would be drawn again: `images`, `sampler`, ...
    variance, uncertainty, skew: the variance of the mean under this interval, the variance of that variance, and the
        third cumulant
    task_variance: the part of the variance that more tasks would reduce
    """

    mean: Number
    low: Number
    high: Number
    covers: str = "sampler"
    level: float = 0.95
    refused: str | None = None
    variance: float | None = None
    uncertainty: float | None = None
    skew: float | None = None
    task_variance: float | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "low", "high"):
            value: float | None = getattr(self, name)
            if value is None or math.isnan(value):
                object.__setattr__(self, name, math.nan)  # the same object, so that equal intervals are equal

    @property
    def has_mean(self) -> bool:
        """Return whether there is a number."""
        return not math.isnan(self.mean)

    @property
    def estimate(self) -> Estimate:
        """Return the estimate behind the interval, to combine it with others; refused if there is no variance."""
        if self.variance is None or self.uncertainty is None:
            return Estimate(self.mean, None, self.refused or "it has no variance")
        return Estimate(self.mean, Spread(self.variance, self.uncertainty, self.skew or 0.0))

    def shifted(self, by: float) -> Interval:
        """Return the interval of the number plus a constant."""
        return replace(self, mean=self.mean + by, low=self.low + by, high=self.high + by)

    def negated(self) -> Interval:
        """Return the interval of the negated number."""
        skew = None if self.skew is None else -self.skew
        return replace(self, mean=-self.mean, low=-self.high, high=-self.low, skew=skew)

    @property
    def half_width(self) -> float:
        """Return half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def bounds(self) -> list[float] | None:
        """Return both bounds; None if the interval is refused."""
        return None if self.refused else [self.low, self.high]


@dataclass(frozen=True)
class Spread:
    """Source of a mean's variance; independent sources add up.

    `uncertainty` is the variance of the variance, which itself is an estimate; `third` is the third cumulant, 0 if the
    source is symmetric.
    """

    variance: float
    uncertainty: float
    third: float = 0.0

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.variance + other.variance, self.uncertainty + other.uncertainty, self.third + other.third)

    @property
    def freedom(self) -> float:
        """Compute the degrees of freedom of the variance by Satterthwaite's formula, at least 1."""
        return max(2 * self.variance**2 / self.uncertainty, 1.0)

    @property
    def half_width(self) -> float:
        """Compute half the width of the 95% interval: the less certain the variance, the wider it is."""
        from scipy import special

        if self.variance == 0:
            return 0.0
        return float(special.stdtrit(self.freedom, 0.975)) * math.sqrt(self.variance)

    @property
    def skewness(self) -> float:
        """Return the skewness of the mean."""
        return float(self.third / self.variance**1.5)


@dataclass(frozen=True)
class Estimate:
    """Mean and its spread; without a spread there is no interval, and `refused` states why."""

    mean: float
    spread: Spread | None
    refused: str | None = None

    @classmethod
    def over_tasks(cls, values: npt.ArrayLike) -> Estimate:
        """Estimate the mean from one value per task, each task drawn independently of the others."""
        array = np.asarray(values, dtype=np.float64)
        count = len(array)
        if count == 0:
            raise InputError("no tasks: a mean needs at least one")
        return cls.of_moments(count, float(array.mean()), float(array.var()))

    @classmethod
    def of_moments(cls, count: int, mean: float, variance: float) -> Estimate:
        """Estimate the mean from the number of tasks, their mean and their variance (divided by that number)."""
        if count == 1:
            return cls(mean, None, "one task has no variance: evaluate at least two")
        if math.sqrt(variance) <= ROUNDING * max(1.0, abs(mean)):
            return cls(mean, None, f"all {count} tasks have the same value, so there is no variance to estimate")
        mean_variance = variance / (count - 1)
        return cls(mean, Spread(mean_variance, 2 * mean_variance**2 / (count - 1)))

    @classmethod
    def average(cls, estimates: Sequence[Estimate]) -> Estimate:
        """Average independent estimates, each with the same weight; refused if one of them is."""
        count = len(estimates)
        mean = sum(estimate.mean for estimate in estimates) / count
        spreads = [estimate.spread for estimate in estimates if estimate.spread is not None]
        if len(spreads) < count:
            return cls(mean, None, next(estimate.refused for estimate in estimates if estimate.spread is None))
        return cls(
            mean,
            Spread(
                sum(spread.variance for spread in spreads) / count**2,
                sum(spread.uncertainty for spread in spreads) / count**4,
                sum(spread.third for spread in spreads) / count**3,
            ),
        )

    def negated(self) -> Estimate:
        """Return the estimate of the negated mean."""
        spread = self.spread and replace(self.spread, third=-self.spread.third)
        return Estimate(-self.mean, spread, self.refused)

    def minus(self, other: Estimate) -> Estimate:
        """Subtract an independent estimate, as in Welch's test."""
        mean = self.mean - other.mean
        if self.spread is None or other.spread is None:
            return Estimate(mean, None, self.refused or other.refused)
        return Estimate(
            mean, self.spread + Spread(other.spread.variance, other.spread.uncertainty, -other.spread.third)
        )

    def less(self, constant: float) -> Estimate:
        """Subtract a constant."""
        return replace(self, mean=self.mean - constant)

    def plus(self, source: Spread) -> Estimate:
        """Add an independent source of variance."""
        return self if self.spread is None else Estimate(self.mean, self.spread + source)

    def interval(
        self, interval_name: str = "sampler", level: float = 0.95, over_tasks: Estimate | None = None
    ) -> Interval:
        """Compute Student's t interval; for a skewed mean, on Hall's scale, which removes the skewness.

        Hall's y = x + a x^2 / 3 + a^2 x^3 / 27 + a / 6 of the studentized mean x with skewness a has none, to second
        order (P. Hall, On the removal of skewness by transformation, JRSS B 54, 1992). Without skewness y = x.

        Args:
            interval_name: what would be drawn again
            level: the confidence level
            over_tasks: the same estimate with the variance over tasks alone
        """
        from scipy import special

        check_level(level)
        task_variance = None if over_tasks is None or over_tasks.spread is None else over_tasks.spread.variance
        if self.spread is None:
            return Interval(
                self.mean, math.nan, math.nan, interval_name, level, self.refused, task_variance=task_variance
            )
        bound = float(special.stdtrit(self.spread.freedom, (1 + level) / 2))  # Student's t
        standard_error, skewness = math.sqrt(self.spread.variance), self.spread.skewness
        low, high = (self.mean - _from_symmetric(end, skewness) * standard_error for end in (bound, -bound))
        spread = self.spread.variance, self.spread.uncertainty, self.spread.third
        return Interval(self.mean, low, high, interval_name, level, None, *spread, task_variance)

    def p_value(self) -> float:
        """Compute the two-sided p-value of the test that the mean is zero; it rejects if the interval excludes zero.

        It is 1 if there is no variance.
        """
        from scipy import special

        if self.spread is None:
            return 1.0
        studentized = self.mean / math.sqrt(self.spread.variance)
        return float(2 * special.stdtr(self.spread.freedom, -abs(_to_symmetric(studentized, self.spread.skewness))))


def sampler_interval(values: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Compute Student's t interval of the mean over tasks, which is valid for new tasks from the same items only."""
    return Estimate.over_tasks(values).interval("sampler", level)


def gap_interval(
    reference: npt.ArrayLike, biased: npt.ArrayLike, level: float = 0.95, *, paired: bool = False
) -> Interval:
    """Compute the difference of two means over tasks, reference minus biased, with Welch's t interval.

    If `paired`, task t of both is matched: compute Student's t interval of the differences task by task.
    """
    if paired:
        return Estimate.over_tasks(np.subtract(reference, biased)).interval("sampler", level)
    return Estimate.over_tasks(reference).minus(Estimate.over_tasks(biased)).interval("sampler", level)


def meanings(medium: str | None) -> dict[IntervalName, str]:
    """Describe in one sentence what each interval is valid for, in the words for such items.

    Example:
        >>> meanings("sound")["images"]
        'New recordings of the same classes, and new tasks.'
    """
    item = noun(medium)
    words = {"items": nouns(medium), "an_item": f"{'an' if item[0] in 'aeiou' else 'a'} {item}"}
    return {name: sentence.format(**words) for name, sentence in _MEANING.items()}


def check_intervals(names: Sequence[str]) -> tuple[IntervalName, ...]:
    """Return these names as intervals, in the order given. Raise InputError if there are none or one is unknown."""
    intervals: tuple[IntervalName, ...] = get_args(IntervalName)
    if not names:
        raise InputError(f"no interval: name at least one of {', '.join(intervals)}")
    for name in names:
        if name not in intervals:
            raise UnknownName("interval", name, intervals)
    return tuple(names)  # type: ignore[arg-type]


def check_level(level: float) -> None:
    """Check that the level is a share between 0 and 1."""
    if not 0 < level < 1:
        hint = f": did you mean {level / 100:g}?" if 1 < level < 100 else ""
        raise InputError(f"level: expected a share above 0 and below 1, e.g. 0.95, found {level:g}{hint}")


def _to_symmetric(x: float, skewness: float) -> float:
    """Transform a studentized mean by Hall's formula."""
    return x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 6


def _from_symmetric(y: float, skewness: float) -> float:
    """Invert `_to_symmetric`, which is (1 + a x / 3)^3 up to scale and shift."""
    if abs(skewness) < ROUNDING:
        return y
    return 3 / skewness * (math.cbrt(1 + skewness * (y - skewness / 6)) - 1)


@dataclass(frozen=True)
class Needed:
    """Further tasks or data that would make a difference conclusive, if it is as large as it looks.

    tasks: None if no number of tasks would be enough
    data: the factor for the images per class (or the classes, by the interval) and for the tasks; None if tasks alone
        are enough, or if the factor is above `MOST`
    """

    tasks: int | None
    data: float | None


def needed(interval: Interval, tasks: int, limit: float = 0.0) -> Needed | None:
    """Estimate the number of further tasks, or the data, needed to distinguish a number from a limit.

    Args:
        interval: the number; its `task_variance` falls with the number of tasks, the remaining variance with the data
        tasks: the number of tasks evaluated
        limit: the limit

    Returns:
        None if the number is distinguished from the limit already, or has no interval.
    """
    from scipy import special

    spread, task_variance = interval.estimate.spread, interval.task_variance
    if spread is None or task_variance is None:
        return None
    squared_quantile = float(special.stdtrit(spread.freedom, (1 + interval.level) / 2)) ** 2
    target_variance = (interval.mean - limit) ** 2 / squared_quantile
    data_variance = max(spread.variance - task_variance, 0.0)
    if spread.variance <= target_variance:
        return None
    if data_variance < target_variance and task_variance / (target_variance - data_variance) <= MOST:
        return Needed(int(tasks * (task_variance / (target_variance - data_variance) - 1)) + 1, None)
    factor = (data_variance + task_variance) / target_variance if target_variance else MOST + 1
    return Needed(None, factor if factor <= MOST else None)
