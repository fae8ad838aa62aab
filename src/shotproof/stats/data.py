"""What new images, or new classes, would change in means over tasks: the intervals `images` and `classes`.

Halves of the classes differ by their images too, so `classes` covers new images as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from shotproof.catalog.catalog import Catalog
from shotproof.errors import Starved
from shotproof.stats.drawing import NO_INPUTS, Inputs
from shotproof.stats.intervals import Estimate
from shotproof.stats.splits import SPLITS, TASKS_A_HALF, Classifiers, MeanOf, SplitMeans, Units, split_means
from shotproof.tasks.taskset import TaskSet

UNITS: tuple[Units, ...] = get_args(Units)


@dataclass(frozen=True)
class DataSpread:
    """The means on split halves, or the reason why the data cannot be split, for images and for classes."""

    means: dict[Units, SplitMeans] = field(default_factory=dict)
    refused: dict[Units, str] = field(default_factory=dict)

    def widen(self, estimate: Estimate, covers: Units, weights: Mapping[MeanOf, float]) -> Estimate:
        """An estimate over tasks with the variance that the data adds to it.

        `weights` say of which means it is made, by the numbers of the task set and of the encoder, method and metric:
        {(0, 0, "ncc", "acc"): 1} is an accuracy, {(0, 0, "ncc", "acc"): 1, (0, 1, "ncc", "acc"): -1} the paired
        difference between two encoders, and {(0, 0, "ncc", "wacc"): 1, (1, 0, "ncc", "wacc"): -1} the gap between two
        task sets.
        """
        if covers in self.refused:
            return Estimate(estimate.mean, None, self.refused[covers])
        return estimate.plus(self.means[covers].spread(weights))


def data_spread(
    covers: Iterable[Units],
    task_sets: Sequence[TaskSet],
    catalog: Catalog,
    classifiers: Classifiers,
    *,
    inputs: Inputs = NO_INPUTS,
    splits: int = SPLITS,
    tasks: int = TASKS_A_HALF,
    seed: int = 0,
    workers: int = 1,
) -> DataSpread:
    """Re-evaluate on split halves for each interval; data that is too small for it is a reason, not an error."""
    spread = DataSpread()
    for units in covers:
        try:
            spread.means[units] = split_means(
                task_sets,
                catalog,
                classifiers,
                units,
                inputs=inputs,
                splits=splits,
                tasks=tasks,
                seed=seed,
                workers=workers,
            )
        except Starved as error:
            spread.refused[units] = str(error)
    return spread
