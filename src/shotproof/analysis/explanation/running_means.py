"""Means and variances over tasks of many quantities at once, block by block, in the memory of one block."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from shotproof.analysis.explanation.chance import FloatArray
from shotproof.stats.intervals import Estimate


class RunningMeans:
    """The mean and variance of each column over all rows added so far."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean: FloatArray = np.zeros(columns)
        self._squares: FloatArray = np.zeros(columns)  # summed squared deviations from the mean

    def add(self, rows: sparse.csr_matrix) -> None:
        """Add rows, [rows, columns]; combined with those before as Chan, Golub and LeVeque (1983) do."""
        count, columns = rows.shape
        entries = np.bincount(rows.indices, minlength=columns)
        mean = np.bincount(rows.indices, rows.data, columns) / count
        deviation = rows.data - mean[rows.indices]
        squares = np.bincount(rows.indices, deviation**2, columns) + (count - entries) * mean**2
        total, shift = self.count + count, mean - self.mean
        self._squares += squares + shift**2 * self.count * count / total
        self.mean = self.mean + shift * count / total
        self.count = total

    def estimate(self, column: int) -> Estimate:
        """The mean over tasks of one column, with its spread."""
        return Estimate.of_moments(self.count, float(self.mean[column]), float(self._squares[column]) / self.count)
