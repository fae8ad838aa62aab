"""Tasks of classes that are near each other: semantic task sampling (Bennequin et al., 2022).

The first class is drawn uniformly, each further one c with a probability proportional to the product over the classes
c' drawn so far of exp(-D(c, c') / (temperature * mean D)). The mean is over all pairs of classes, so that a temperature
means the same for any distance: far below 1 only the nearest classes meet, and far above it all classes alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from shotproof import draws
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch
from shotproof.features.features import Features
from shotproof.methods.method import require_positive
from shotproof.tables import Meta
from shotproof.tasks.class_distances import FloatArray, euclidean, file_digest, read_class_distances
from shotproof.tasks.pool import Design, IntArray, Pool
from shotproof.tasks.random import RandomSampler
from shotproof.tasks.taskset import TaskSet

TEMPERATURE = 0.25  # about that of the published tieredImageNet testbed

_CHOICE = 100  # what a random number is drawn for, beside what RandomSampler draws
# Probabilities are whole numbers of this grain, and distances of the other: no platform's last bit decides.
_GRAIN, _DIGITS = 2.0**32, 9


class SemanticSampler(RandomSampler):
    """Classes near each other by a file of class distances, or else by the features' class means; items as `random`.

    class_distances: a tree, a matrix or a table of class attributes (see `class_distances.py`)
    class_distances_digest: of that file, to make sure that it is the same when tasks are drawn anew
    """

    about: ClassVar[str] = "classes near each other in a hierarchy, a distance matrix or feature space"

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        class_distances: str | Path | None = None,
        class_distances_digest: str | None = None,
        features: Features | None = None,
        temperature: float = TEMPERATURE,
        skip_small_classes: bool = False,
    ) -> None:
        super().__init__(catalog, design, seed, skip_small_classes=skip_small_classes)
        require_positive("temperature", temperature, float)
        self.temperature = temperature
        self.file = None if class_distances is None else Path(class_distances)
        if self.file is not None:
            self.distances = read_class_distances(self.file, self.pool.classes, self.pool.sizes.tolist())
            self.digest = file_digest(self.file)
            if class_distances_digest not in (None, self.digest):
                raise Mismatch(
                    f"class distances: {self.file} has digest {self.digest}, the tasks were drawn with "
                    f"{class_distances_digest}"
                )
        elif features is not None:
            self.distances = euclidean(class_means(self.pool, features))
        else:
            raise InputError(
                "sampler 'semantic' needs a file of class distances (--class-distances: a tree, a matrix or class "
                "attributes) or features (--features features.parquet)"
            )

    def choose_classes(self, task: IntArray) -> IntArray:
        """The classes of these tasks, [t, way], one after the other."""
        count, way = len(self.pool.classes), self.design.way
        mean = self.distances.sum() / (count * (count - 1))
        scaled = np.round(self.distances / (mean or 1.0), _DIGITS) / self.temperature
        energy = np.zeros((len(task), count))
        chosen = np.empty((len(task), way), dtype=np.int64)
        rows = np.arange(len(task))
        for place in range(way):
            lowest = energy.min(axis=1, keepdims=True)
            ends = np.cumsum(np.rint(np.exp(lowest - energy) * _GRAIN), axis=1)
            point = np.floor(draws.uniform(draws.bits(self.seed, task, _CHOICE, place)) * ends[:, -1])
            chosen[:, place] = (ends <= np.minimum(point, ends[:, -1] - 1)[:, None]).sum(axis=1)
            energy += scaled[chosen[:, place]]
            energy[rows, chosen[:, place]] = np.inf
        return chosen

    def about_classes(self, classes: IntArray) -> dict[str, Any]:
        """The coarsity: the mean squared distance between two classes of the task."""
        way = classes.shape[1]
        squares = self.distances[classes[:, :, None], classes[:, None, :]] ** 2
        return {"coarsity": np.repeat(squares.sum(axis=(1, 2)) / (way * (way - 1)), way)}

    def parameters(self) -> Meta:
        """The temperature, and which file the distances are from."""
        file = {} if self.file is None else {"class_distances": str(self.file), "class_distances_digest": self.digest}
        return {**super().parameters(), "temperature": self.temperature, **file}

    def summary(self, tasks: TaskSet) -> Meta:
        """The mean coarsity, beside that of classes drawn uniformly."""
        count = len(self.pool.classes)
        uniform = float((self.distances**2).sum() / (count * (count - 1)))
        drawn = float(tasks.table.column("coarsity").to_numpy()[tasks.starts[:-1]].mean())
        return {**super().summary(tasks), "coarsity_mean": drawn, "coarsity_of_uniform_classes": uniform}


def class_means(pool: Pool, features: Features) -> FloatArray:
    """The mean feature of each class's items, [classes, d]."""
    rows = features.rows_of(pool.items)
    of_class = np.split(rows, pool.offsets[1:-1])
    return np.stack([features.array[members].astype(np.float64).mean(axis=0) for members in of_class])
