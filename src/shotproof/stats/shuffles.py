"""Null distribution of losses, from the data itself: what task sets lose if their words, or contexts, mean nothing.

Words are shuffled between the items of each class, once for all tasks of a set. A set whose words mean nothing is one
more such shuffle, so the loss that it shows by chance is distributed as that of the shuffles (a permutation test). The
variance over tasks misses most of it, because tasks that plant the same word in the same class share the items that
have it. Halves of the data miss some of it, because a sampler that draws few items draws as many from a half as from
the whole.

This module works on arrays only; callers compute them by re-evaluation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shotproof.results.evaluated import Classifier
from shotproof.stats.intervals import FloatArray, Spread


@dataclass(frozen=True)
class ShuffledMeans:
    """Moments over shuffles of the values of k means (task set, classifier, metric), by name.

    of_means: the covariance over shuffles of means over `tasks` tasks, [k, k]
    of_tasks: the covariance over shuffles of the values on one task, averaged over tasks, [k, k]
    """

    names: list[Hashable]
    of_means: FloatArray
    of_tasks: FloatArray
    shuffles: int
    tasks: int

    @classmethod
    def of_values(cls, values: FloatArray, names: Sequence[Hashable]) -> ShuffledMeans:
        """Compute the moments from one value per task: [shuffles, tasks, k]."""
        shuffles, tasks, _ = values.shape
        residuals = values - values.mean(axis=0)
        means = residuals.mean(axis=1)
        return cls(
            list(names),
            means.T @ means / (shuffles - 1),
            np.einsum("rti,rtj->ij", residuals, residuals) / ((shuffles - 1) * tasks),
            shuffles,
            tasks,
        )

    def spread(self, weights: Mapping[Any, float], placebos: Mapping[Any, float], tasks: int) -> Spread:
        """Estimate the variance of a weighted sum of means under the null hypothesis that the words do not matter.

        Args:
            weights: the weights of the means of task sets
            placebos: the weights of the means of their placebos, by the set that they are placebos of; each task of a
                placebo is shuffled separately
            tasks: the number of tasks of the means

        Returns:
            The variance over shuffles, rescaled to this number of tasks, plus the variance of the placebo.
        """
        set_weights, placebo_weights = (
            np.array([by_name.get(name, 0.0) for name in self.names]) for by_name in (weights, placebos)
        )
        mean, task, placebo = (
            max(float(vector @ moments @ vector), 0.0)  # rounding may take a sum of nothing below it
            for vector, moments in (
                (set_weights, self.of_means),
                (set_weights, self.of_tasks),
                (placebo_weights, self.of_tasks),
            )
        )
        # The variance of a mean over n tasks is c (1 - 1/n) + v/n, with c the covariance between tasks.
        # One task does not show the covariance: all of its variance is attributed to it.
        between = max((mean - task / self.tasks) / (1 - 1 / self.tasks), 0.0) if self.tasks > 1 else mean
        variance = between * (1 - 1 / tasks) + (task + placebo) / tasks
        return Spread(variance, 2 * max(mean, variance) ** 2 / (self.shuffles - 1))


@dataclass(frozen=True)
class ShuffledTasks:
    """Accuracies of classifiers on task sets with shuffled words.

    means: moments of the accuracies by task
    by_task: accuracies of a task set's first tasks, in percent, by the digest of the set, classifier and metric:
        [shuffles, tasks]
    by_row: accuracies on each row, by the digest and classifier: [shuffles, rows]
    """

    means: ShuffledMeans
    by_task: Mapping[Hashable, FloatArray]
    by_row: Mapping[tuple[str, Classifier], FloatArray]
