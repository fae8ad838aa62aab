"""Intervals that say what would be drawn again.

An `Estimate` is a mean with its `Spread`; an `Interval` is what a reader sees. The spreads of independent sources add
up, and their degrees of freedom combine as Welch and Satterthwaite have it, so one rule serves means over tasks,
differences between methods, gaps between task sets, and what new images or classes would change.

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
Covers = Literal["sampler", "depletion", "images", "classes"]

if TYPE_CHECKING:
    Number = float
else:
    Number = float | None  # null in JSON is NaN in memory

_MEANING: dict[Covers, str] = {
    "sampler": "New tasks drawn from the same {items}; it says nothing about new {items} or new classes.",
    "depletion": "New tasks, on tasks that never share {an_item}: safe for new {items}, and wider than it need be.",
    "images": "New {items} of the same classes, and new tasks.",
    "classes": "New classes with new {items}, and new tasks.",
}

# A spread below this share of the values is rounding error: the values are constant.
ROUNDING = 1e-12
MOST = 20.0  # times the tasks or the data: beyond this, the difference is taken to be too small to tell


@dataclass(frozen=True)
class Interval:
    """A number with its interval and what the interval is made from: comparisons, cards and leaderboards have these.

    mean: null if there is no number, such as a share of skill that is not there
    low, high: null if no interval can be given; `refused` says why
    covers: what would be drawn again: `images`, `sampler`, ...
    variance, uncertainty, skew: of the mean under this interval: its variance, how well that is known (the variance of
        the variance) and its third cumulant
    task_variance: the part of the variance that more tasks would lower
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
        """What the interval is made from, to combine it with others; refused if there is no variance."""
        if self.variance is None or self.uncertainty is None:
            return Estimate(self.mean, None, self.refused or "there is no variance of it")
        return Estimate(self.mean, Spread(self.variance, self.uncertainty, self.skew or 0.0))

    def negated(self) -> Interval:
        """The same with the other sign."""
        skew = None if self.skew is None else -self.skew
        return replace(self, mean=-self.mean, low=-self.high, high=-self.low, skew=skew)

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2

    @property
    def bounds(self) -> list[float] | None:
        """Both bounds; None where the interval is refused."""
        return None if self.refused else [self.low, self.high]


@dataclass(frozen=True)
class Spread:
    """One source of a mean's variance; independent sources add up.

    `uncertainty` is the variance of the variance, itself an estimate; `third` is the third cumulant, 0 where the
    source is symmetric.
    """

    variance: float
    uncertainty: float
    third: float = 0.0

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.variance + other.variance, self.uncertainty + other.uncertainty, self.third + other.third)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the variance, after Satterthwaite, at least 1."""
        return max(2 * self.variance**2 / self.uncertainty, 1.0)

    @property
    def half_width(self) -> float:
        """Of the 95% interval: a variance that is known badly makes a wider one than the same known well."""
        from scipy import special

        if self.variance == 0:
            return 0.0
        return float(special.stdtrit(self.freedom, 0.975)) * math.sqrt(self.variance)

    @property
    def skewness(self) -> float:
        """The skewness of the mean."""
        return float(self.third / self.variance**1.5)


@dataclass(frozen=True)
class Estimate:
    """A mean and its spread; where there is no spread to estimate, `refused` says why and no interval can be made."""

    mean: float
    spread: Spread | None
    refused: str | None = None

    @classmethod
    def over_tasks(cls, values: npt.ArrayLike) -> Estimate:
        """The mean of one value per task, each task drawn independently of the others."""
        array = np.asarray(values, dtype=np.float64)
        count = len(array)
        if count == 0:
            raise InputError("no tasks: a mean needs at least one")
        return cls.of_moments(count, float(array.mean()), float(array.var()))

    @classmethod
    def of_moments(cls, count: int, mean: float, variance: float) -> Estimate:
        """The same from the number of tasks, their mean and the variance around it, divided by that number."""
        if count == 1:
            return cls(mean, None, "one task has no variance: evaluate at least two")
        if math.sqrt(variance) <= ROUNDING * max(1.0, abs(mean)):
            return cls(mean, None, f"all {count} tasks have the same value: there is no variance to estimate")
        of_mean = variance / (count - 1)
        return cls(mean, Spread(of_mean, 2 * of_mean**2 / (count - 1)))

    @classmethod
    def average(cls, estimates: Sequence[Estimate]) -> Estimate:
        """The mean of independent estimates, each with the same weight; refused where one of them is."""
        count = len(estimates)
        mean = sum(one.mean for one in estimates) / count
        spreads = [one.spread for one in estimates if one.spread is not None]
        if len(spreads) < count:
            return cls(mean, None, next(one.refused for one in estimates if one.spread is None))
        return cls(
            mean,
            Spread(
                sum(one.variance for one in spreads) / count**2,
                sum(one.uncertainty for one in spreads) / count**4,
                sum(one.third for one in spreads) / count**3,
            ),
        )

    def negated(self) -> Estimate:
        """The same with the other sign."""
        spread = self.spread and replace(self.spread, third=-self.spread.third)
        return Estimate(-self.mean, spread, self.refused)

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two independent estimates over tasks, as in Welch's test."""
        mean = self.mean - other.mean
        if self.spread is None or other.spread is None:
            return Estimate(mean, None, self.refused or other.refused)
        return Estimate(
            mean, self.spread + Spread(other.spread.variance, other.spread.uncertainty, -other.spread.third)
        )

    def less(self, known: float) -> Estimate:
        """The same lower by a number that is known exactly."""
        return replace(self, mean=self.mean - known)

    def plus(self, source: Spread) -> Estimate:
        """The same mean with a further, independent source of variance."""
        return self if self.spread is None else Estimate(self.mean, self.spread + source)

    def interval(self, covers: str = "sampler", level: float = 0.95, over_tasks: Estimate | None = None) -> Interval:
        """Student's t interval; of a skewed mean, on Hall's scale, where the skewness is gone.

        `over_tasks` is the same with the variance over tasks alone.

        Hall's y = x + a x^2 / 3 + a^2 x^3 / 27 + a / 6 of the studentized mean x with skewness a has none, to second
        order (P. Hall, On the removal of skewness by transformation, JRSS B 54, 1992). Without skewness y = x.
        """
        from scipy import special

        check_level(level)
        task_variance = None if over_tasks is None or over_tasks.spread is None else over_tasks.spread.variance
        if self.spread is None:
            return Interval(self.mean, math.nan, math.nan, covers, level, self.refused, task_variance=task_variance)
        bound = float(special.stdtrit(self.spread.freedom, (1 + level) / 2))  # Student's t
        error, skewness = math.sqrt(self.spread.variance), self.spread.skewness
        low, high = (self.mean - _from_symmetric(end, skewness) * error for end in (bound, -bound))
        spread = self.spread.variance, self.spread.uncertainty, self.spread.third
        return Interval(self.mean, low, high, covers, level, None, *spread, task_variance)

    def p_value(self) -> float:
        """The two-sided p-value of the test that the mean is zero, which rejects where the interval excludes zero.

        1 where there is no variance to test by.
        """
        from scipy import special

        if self.spread is None:
            return 1.0
        studentized = self.mean / math.sqrt(self.spread.variance)
        return float(2 * special.stdtr(self.spread.freedom, -abs(_to_symmetric(studentized, self.spread.skewness))))


def sampler_interval(values: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Student's t interval of the mean over tasks: it covers a new draw of tasks from the same items, no more."""
    return Estimate.over_tasks(values).interval("sampler", level)


def gap_interval(
    reference: npt.ArrayLike, biased: npt.ArrayLike, level: float = 0.95, *, paired: bool = False
) -> Interval:
    """The difference of two means over tasks, reference minus biased, with Welch's t interval.

    `paired` where task t of both is matched: Student's t interval of the differences task by task.
    """
    if paired:
        return Estimate.over_tasks(np.subtract(reference, biased)).interval("sampler", level)
    return Estimate.over_tasks(reference).minus(Estimate.over_tasks(biased)).interval("sampler", level)


def meanings(medium: str | None) -> dict[Covers, str]:
    """What each interval covers, in one sentence, in the words for such items.

    Example:
        >>> meanings("sound")["images"]
        'New recordings of the same classes, and new tasks.'
    """
    one = noun(medium)
    words = {"items": nouns(medium), "an_item": f"{'an' if one[0] in 'aeiou' else 'a'} {one}"}
    return {name: sentence.format(**words) for name, sentence in _MEANING.items()}


def check_intervals(names: Sequence[str]) -> tuple[Covers, ...]:
    """The intervals of these names, in the order given; InputError for none, UnknownName for one that there is not."""
    known: tuple[Covers, ...] = get_args(Covers)
    if not names:
        raise InputError(f"no interval: name at least one of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UnknownName("interval", name, known)
    return tuple(names)  # type: ignore[arg-type]


def check_level(level: float) -> None:
    """Refuse a level that is not a share between 0 and 1."""
    if not 0 < level < 1:
        hint = f": did you mean {level / 100:g}?" if 1 < level < 100 else ""
        raise InputError(f"level: expected a share above 0 and below 1, e.g. 0.95, found {level:g}{hint}")


def _to_symmetric(x: float, skewness: float) -> float:
    return x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 6


def _from_symmetric(y: float, skewness: float) -> float:
    """The inverse of `_to_symmetric`, which is (1 + a x / 3)^3 up to scale and shift."""
    if abs(skewness) < ROUNDING:
        return y
    return 3 / skewness * (math.cbrt(1 + skewness * (y - skewness / 6)) - 1)


@dataclass(frozen=True)
class Needed:
    """How many more tasks would make a difference conclusive if it is as large as it looks, or how much more data.

    tasks: None where no number of tasks would
    data: times the images per class (or the classes, by the interval), with as many tasks more; None where tasks alone
        would, or where nobody has so much
    """

    tasks: int | None
    data: float | None


def needed(interval: Interval, tasks: int, limit: float = 0.0) -> Needed | None:
    """What would tell a number from a limit.

    Args:
        interval: of the number; its `task_variance` falls with the number of tasks, the rest with the data
        tasks: how many there were
        limit: what it is told from

    Returns:
        None if it can be told from the limit, or has no interval.
    """
    from scipy import special

    spread, of_tasks = interval.estimate.spread, interval.task_variance
    if spread is None or of_tasks is None:
        return None
    wide = float(special.stdtrit(spread.freedom, (1 + interval.level) / 2)) ** 2
    enough = (interval.mean - limit) ** 2 / wide
    of_data = max(spread.variance - of_tasks, 0.0)
    if spread.variance <= enough:
        return None
    if of_data < enough and of_tasks / (enough - of_data) <= MOST:
        return Needed(int(tasks * (of_tasks / (enough - of_data) - 1)) + 1, None)
    times = (of_data + of_tasks) / enough if enough else MOST + 1
    return Needed(None, times if times <= MOST else None)
