"""The variance that the data adds to a mean over tasks, from re-evaluation on split halves of the data.

For a mean over tasks, theta, and data that splits at random into halves A and B (of every class's items, or of the
classes), Var(theta) is about (theta_A - theta_B)^2 / 4, less what the tasks drawn on the halves add to it. All means of
interest (methods, metrics, samplers) are taken on the same splits, so that any weighted sum of them has its variance
too: a paired difference and a gap are sums with the weights 1 and -1.

Arrays only: `splits.py` makes them from a catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shotproof.stats.intervals import FloatArray, Spread


@dataclass(frozen=True)
class Halves:
    """Differences between halves, theta_A - theta_B, of k means on a number of splits.

    differences: [splits, k]
    noise: [k, k], the covariance that a row of `differences` has because few tasks were drawn on each half
    freedom: the number of units that were split (items, classes), less the number of groups that each was split within
    sides: [splits, units], 1 where a unit is in half A and -1 where it is in half B; None where the units are so many
        that the mean over them has no skewness to speak of
    """

    differences: FloatArray
    noise: FloatArray
    freedom: int
    sides: npt.NDArray[np.int8] | None = None

    @classmethod
    def of_tasks(cls, paired: FloatArray, freedom: int, sides: npt.NDArray[np.int8] | None = None) -> Halves:
        """From the differences between task t on half A and task t on half B: [splits, tasks, k]."""
        splits, tasks, _ = paired.shape
        differences = paired.mean(axis=1)
        around = paired - differences[:, None]
        noise = np.einsum("sti,stj->ij", around, around) / (splits * tasks * (tasks - 1))
        return cls(differences, noise, freedom, sides)

    def spread(self, weights: Sequence[float] | FloatArray) -> Spread:
        """What the data adds to the variance of the weighted sum of the k means.

        The variance is known no better than the splits are many, nor than the units are.
        """
        chosen = np.asarray(weights, dtype=np.float64)
        halved = self.differences @ chosen / 2
        squares = halved**2
        variance = max(float(squares.mean() - chosen @ self.noise @ chosen / 4), 0.0)
        uncertainty = float(squares.var(ddof=1)) / len(squares) + 2 * variance**2 / self.freedom
        return Spread(variance, uncertainty, self._third_cumulant(halved))

    def _third_cumulant(self, halved: FloatArray) -> float:
        """Of a mean over units, from what each adds to it: how far the half with the unit is above the other.

        The noise of the splits is symmetric, so it adds nothing to the sum of cubes on average.
        """
        if self.sides is None:
            return 0.0
        units = self.sides.shape[1]
        added = self.sides.T @ halved / len(halved) * (units - 1) / units
        return float((added**3).sum() * units**2 / ((units - 1) * (units - 2)))
