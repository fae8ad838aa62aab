"""The variance that the data adds to a mean over tasks, from re-evaluation on halves of the data.

For a mean over tasks, theta, and data that is divided at random into halves A and B (of every class's items, or of the
classes), theta_A and theta_B are independent, so (theta_A - theta_B)^2 / 4 is on average the variance of their mean
(theta_A + theta_B) / 2. That mean is theta plus what the halving adds, and its variance over halvings of the same data
is what the halving adds; the rest is the variance of theta. What comes of drawing few tasks on each half is taken off
both.

All means of interest (methods, metrics, samplers) are taken on the same halvings, so that any weighted sum of them has
its variance too: a paired difference and a gap are sums with the weights 1 and -1.

Arrays only: whoever re-evaluates makes them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import InputError
from shotproof.stats.intervals import FloatArray, Spread

# Excess kurtosis that is assumed of what a class, and an item, adds to a mean. Of a difference between classifiers few
# items add most; where tails are heavy or skewed, halvings have told 70 to 150 of it, and 10 of an accuracy.
KURTOSIS_OF_CLASSES = 1.0
KURTOSIS_OF_ITEMS = 100.0


@dataclass(frozen=True)
class HalfMoments:
    """A quantity [halvings, k] and the covariance [k, k] that it has because few tasks were drawn on each half."""

    values: FloatArray
    noise: FloatArray

    @classmethod
    def over_tasks(cls, values: FloatArray) -> HalfMoments:
        """From one value per task: [halvings, tasks, k]."""
        halvings, tasks, _ = values.shape
        means = values.mean(axis=1)
        around = values - means[:, None]
        return cls(means, np.einsum("sti,stj->ij", around, around) / (halvings * tasks * (tasks - 1)))

    def noise_of(self, weights: FloatArray) -> float:
        """The variance that a weighted sum has because of few tasks."""
        return float(weights @ self.noise @ weights)


@dataclass(frozen=True)
class Halves:
    """Half the difference between halves, (theta_A - theta_B) / 2, and their mean, (theta_A + theta_B) / 2.

    freedom: the number of units that were divided (items, classes), less the number of groups that they are in
    sides: [halvings, units], 1 where a unit is in half A, -1 where it is in half B; where the units are few (classes)

    A variance from few units is often far too small just when the mean is far off, since what a unit adds is skewed and
    heavy-tailed. So for few units what the halving adds is left in, the skewness is estimated, and the variance
    is taken to be known less well.
    """

    difference: HalfMoments
    mean: HalfMoments
    freedom: int
    sides: npt.NDArray[np.int8] | None = None

    @classmethod
    def of_tasks(
        cls, first: FloatArray, second: FloatArray, freedom: int, sides: npt.NDArray[np.int8] | None = None
    ) -> Halves:
        """From the values of task t on half A and of task t on half B: [halvings, tasks, k] each."""
        return cls(
            HalfMoments.over_tasks((first - second) / 2), HalfMoments.over_tasks((first + second) / 2), freedom, sides
        )

    def spread(self, weights: Sequence[float] | FloatArray) -> Spread:
        """What the data adds to the variance of the weighted sum of the k means.

        The variance is known no better than the halvings are many, nor than the units are.
        """
        chosen = np.asarray(weights, dtype=np.float64)
        halved, mean = self.difference.values @ chosen, self.mean.values @ chosen
        between = float((halved**2).mean())
        variance = between - self.difference.noise_of(chosen)
        if self.sides is not None:
            variance = max(variance, 0.0)
            uncertainty = 2 * between**2 / len(halved) + variance**2 * (
                2 / self.freedom + KURTOSIS_OF_CLASSES / self.sides.shape[1]
            )
            return Spread(variance, uncertainty, _third_cumulant(self.sides, halved))
        over_halvings = float(mean.var(ddof=1))
        variance = max(variance - (over_halvings - self.mean.noise_of(chosen)), 0.0)
        of_items = (2 + KURTOSIS_OF_ITEMS) * variance**2 / self.freedom
        return Spread(variance, 2 * (between**2 + over_halvings**2) / len(halved) + of_items)


@dataclass(frozen=True)
class HalvedMeans:
    """Halves of the k means of several task sets, classifiers and metrics, by what they are of.

    refused: why a task set, by its digest, has none
    near_duplicates: items that were kept together with others, as their features are nearly the same
    """

    halves: Halves
    names: list[Hashable]
    refused: Mapping[str | None, str] = field(default_factory=dict)
    near_duplicates: int = 0

    def spread(self, weights: Mapping[Any, float]) -> Spread:
        """What the data adds to the variance of a weighted sum of these means; those without a weight take no part."""
        for name in weights:
            if name not in self.names:
                raise InputError(f"no mean of {name}: expected one of {', '.join(map(str, self.names))}")
        return self.halves.spread([weights.get(name, 0.0) for name in self.names])


def _third_cumulant(sides: npt.NDArray[np.int8], halved: FloatArray) -> float:
    """Of a mean over units, from what each adds to it: how far the half with the unit is above the other.

    The noise of the halvings is symmetric, so it adds nothing to the sum of cubes on average.
    """
    units = sides.shape[1]
    added = sides.T @ halved / len(halved) * (units - 1) / units
    return float((added**3).sum() * units**2 / ((units - 1) * (units - 2)))
