"""Tasks of similar classes: semantic task sampling (Bennequin et al., 2022).

The first class is drawn uniformly, each further class c with a probability proportional to the product of
exp(-D(c, c') / (temperature * mean D)) over the classes c' drawn so far. The mean is over all pairs of classes, so that
a temperature means the same for any distance: far below 1, only the nearest classes share a task; far above 1, classes
are drawn almost uniformly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from shotproof.core import draws
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.features.features import Features
from shotproof.tasks.class_structure import cub_names_file, euclidean, read_class_distances
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import Axis, BoundSampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet
from shotproof.tasks.uniform.random import BoundRandom, Random

TEMPERATURE = 0.25  # about that of the published tieredImageNet testbed

_CHOICE = 100  # purpose of a random number, apart from those of random tasks
# Probabilities are rounded to multiples of 1 / _GRAIN and distances to _DIGITS, so that all platforms draw the same.
_GRAIN, _DIGITS = 2.0**32, 9


@dataclass(frozen=True)
class Semantic(Random):
    """Classes near each other by a file of class distances, or else by their mean features; items as in `random`."""

    about = "classes near each other in a hierarchy, a distance matrix or feature space"
    paper = "Bennequin et al., Few-Shot Image Classification Benchmarks are Too Far From Reality, 2022"
    example = "semantic(class_distances='tree.csv')"
    takes = ("features",)
    axis: ClassVar[Axis | None] = "classes"

    class_distances: str | None = option(
        None, "file with a tree, a matrix or class attributes; None uses the class means of the features", path=True
    )
    class_distances_digest: str | None = option(None, "expected digest of that file")
    temperature: float = option(TEMPERATURE, "the lower, the more similar the classes of a task", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_distances is not None:
            object.__setattr__(self, "takes", ())  # features are unused then, so they must not be recorded

    def files(self) -> list[Path]:
        """Return the file of class distances, and the file that names its classes if there is one."""
        option_files = super().files()
        return option_files + [names for names in map(cub_names_file, option_files) if names is not None]

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Random]:
        """Bind the sampler to these inputs."""
        return BoundSemantic(self, inputs)


class BoundSemantic(BoundRandom):
    """Semantic sampler bound to its inputs."""

    sampler: Semantic

    def __init__(self, sampler: Semantic, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        if sampler.class_distances is None:
            if inputs.features is None:
                requirement = f"a file of class distances, e.g. {sampler.example}, or features"
                raise InputError(f"sampler '{sampler.name}' needs {requirement}")
            self.distances = euclidean(class_means(self.pool, inputs.features))
            return
        file = Path(sampler.class_distances)
        self.distances = read_class_distances(file, self.pool.classes, self.pool.sizes.tolist())
        self.sampler = sampler.with_digest_of("class_distances")

    def choose_classes(self, task: IntArray) -> IntArray:
        """Draw the classes of these tasks one after the other, [t, way]."""
        count, way = len(self.pool.classes), self.shape.way
        mean = self.distances.sum() / (count * (count - 1))
        scaled = np.round(self.distances / (mean or 1.0), _DIGITS) / self.sampler.temperature
        energy = np.zeros((len(task), count))
        chosen = np.empty((len(task), way), dtype=np.int64)
        rows = np.arange(len(task))
        for slot in range(way):
            lowest = energy.min(axis=1, keepdims=True)
            ends = np.cumsum(np.rint(np.exp(lowest - energy) * _GRAIN), axis=1)
            point = np.floor(draws.uniform(draws.bits(self.seed, task, _CHOICE, slot)) * ends[:, -1])
            chosen[:, slot] = (ends <= np.minimum(point, ends[:, -1] - 1)[:, None]).sum(axis=1)
            energy += scaled[chosen[:, slot]]
            energy[rows, chosen[:, slot]] = np.inf
        return chosen

    def class_columns(self, classes: IntArray) -> dict[str, Any]:
        """Return the coarsity of each task: the mean squared distance between two of its classes."""
        way = classes.shape[1]
        squares = self.distances[classes[:, :, None], classes[:, None, :]] ** 2
        return {"coarsity": np.repeat(squares.sum(axis=(1, 2)) / (way * (way - 1)), way)}

    def summary(self, tasks: TaskSet) -> Meta:
        """Return the mean coarsity, and the coarsity of classes drawn uniformly."""
        count = len(self.pool.classes)
        uniform = float((self.distances**2).sum() / (count * (count - 1)))
        drawn = float(tasks.table.column("coarsity").to_numpy()[tasks.starts[:-1]].mean())
        return {**super().summary(tasks), "coarsity_mean": drawn, "coarsity_of_uniform_classes": uniform}


def class_means(pool: ItemPool, features: Features) -> FloatArray:
    """Compute the mean feature of the items of each class, [classes, d]."""
    rows = features.rows_of(pool.items)
    of_class = np.split(rows, pool.offsets[1:-1])
    return np.stack([features.array[members].astype(np.float64).mean(axis=0) for members in of_class])
