"""Variance that the data adds to a mean over tasks, from re-evaluation on halves of the data.

For a mean over tasks, theta, and data that is split at random into halves A and B (of every class's items, or of the
classes), theta_A and theta_B are independent, so (theta_A - theta_B)^2 / 4 is on average the variance of their mean
(theta_A + theta_B) / 2. That mean is theta plus an error from the split. The variance of the mean over splits of the
same data is the variance of this error; the remainder is the variance of theta. The variance that comes from drawing
few tasks on each half is subtracted from both.

All means of interest (methods, metrics, samplers) are taken on the same splits, so the variance of any weighted sum of
them can be computed: a paired difference and a gap are sums with the weights 1 and -1.

This module works on arrays only; callers compute them by re-evaluation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from shotproof.core.errors import InputError
from shotproof.stats.intervals import FloatArray, Spread

# Assumed excess kurtosis of the contribution of a class, and of an item, to a mean. A few items contribute most of a
# difference between classifiers: with heavy or skewed tails, halvings gave 70 to 150 for it, and 10 for an accuracy.
KURTOSIS_OF_CLASSES = 1.0
KURTOSIS_OF_ITEMS = 100.0


@dataclass(frozen=True)
class HalfMoments:
    """Quantity [halvings, k] and its covariance [k, k] that comes from drawing few tasks on each half."""

    values: FloatArray
    noise: FloatArray

    @classmethod
    def over_tasks(cls, values: FloatArray) -> HalfMoments:
        """Compute the moments from one value per task: [halvings, tasks, k]."""
        halvings, tasks, _ = values.shape
        means = values.mean(axis=1)
        residuals = values - means[:, None]
        return cls(means, np.einsum("sti,stj->ij", residuals, residuals) / (halvings * tasks * (tasks - 1)))

    def noise_of(self, weights: FloatArray) -> float:
        """Compute the variance of a weighted sum that comes from drawing few tasks."""
        return float(weights @ self.noise @ weights)


@dataclass(frozen=True)
class Halves:
    """Half the difference between halves, (theta_A - theta_B) / 2, and their mean, (theta_A + theta_B) / 2.

    freedom: the number of units that were split (items, classes), minus the number of groups that they are in
    sides: [halvings, units], 1 if a unit is in half A, -1 if it is in half B; only for few units (classes)

    A variance from few units is often far too small just when the mean is far off, because the contribution of a unit
    is skewed and heavy-tailed. So for few units the variance of the split is not subtracted, the skewness is estimated,
    and the variance is treated as less certain.
    """

    difference: HalfMoments
    mean: HalfMoments
    freedom: int
    sides: npt.NDArray[np.int8] | None = None

    @classmethod
    def of_tasks(
        cls, first: FloatArray, second: FloatArray, freedom: int, sides: npt.NDArray[np.int8] | None = None
    ) -> Halves:
        """Compute the halves from the values of task t on half A and on half B: [halvings, tasks, k] each."""
        return cls(
            HalfMoments.over_tasks((first - second) / 2), HalfMoments.over_tasks((first + second) / 2), freedom, sides
        )

    def spread(self, weights: Sequence[float] | FloatArray) -> Spread:
        """Compute the variance that the data adds to the weighted sum of the k means.

        Its uncertainty depends on the number of halvings and on the number of units.
        """
        weight_array = np.asarray(weights, dtype=np.float64)
        half_differences, mean = self.difference.values @ weight_array, self.mean.values @ weight_array
        between = float((half_differences**2).mean())
        variance = between - self.difference.noise_of(weight_array)
        if self.sides is not None:
            variance = max(variance, 0.0)
            uncertainty = 2 * between**2 / len(half_differences) + variance**2 * (
                2 / self.freedom + KURTOSIS_OF_CLASSES / self.sides.shape[1]
            )
            return Spread(variance, uncertainty, _third_cumulant(self.sides, half_differences))
        split_variance = float(mean.var(ddof=1))
        variance = max(variance - (split_variance - self.mean.noise_of(weight_array)), 0.0)
        item_uncertainty = (2 + KURTOSIS_OF_ITEMS) * variance**2 / self.freedom
        return Spread(variance, 2 * (between**2 + split_variance**2) / len(half_differences) + item_uncertainty)


@dataclass(frozen=True)
class HalvedMeans:
    """Halves of the k means of several task sets, classifiers and metrics, by name.

    refused: the reason if a task set, by its digest, has none
    near_duplicates: items that were kept together with others because their features are nearly the same
    """

    halves: Halves
    names: list[Hashable]
    refused: Mapping[str | None, str] = field(default_factory=dict)
    near_duplicates: int = 0

    def spread(self, weights: Mapping[Any, float]) -> Spread:
        """Compute the variance that the data adds to a weighted sum of these means; missing weights are zero."""
        for name in weights:
            if name not in self.names:
                raise InputError(f"no mean of {name}: expected one of {', '.join(map(str, self.names))}")
        return self.halves.spread([weights.get(name, 0.0) for name in self.names])


def _third_cumulant(sides: npt.NDArray[np.int8], half_differences: FloatArray) -> float:
    """Estimate the third cumulant of a mean over units from the contribution of each: its half minus the other half.

    The noise of the halvings is symmetric, so it adds nothing to the sum of cubes on average.
    """
    units = sides.shape[1]
    contributions = sides.T @ half_differences / len(half_differences) * (units - 1) / units
    return float((contributions**3).sum() * units**2 / ((units - 1) * (units - 2)))
