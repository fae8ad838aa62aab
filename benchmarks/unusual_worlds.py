"""Worlds that are not Gaussian, for the coverage of the intervals: heavy tails, skew, unequal classes, near-duplicates.

Each world is drawn as a catalog with its features, and goes through the package as a user's data does; the truth is the
mean over tasks on new items of the same classes, drawn in the same way.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import torch

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import make_method
from shotproof.results.evaluated import METRICS
from shotproof.stats.intervals import Interval
from shotproof.tasks.sampler import sample

METHODS = ("ncc", "cosine")
WAY, SHOT, QUERY, TASKS = 5, 5, 10, 600
DIMENSIONS = 12
# Near-duplicates of one source are this near, in units of the spread within a class.
NEAR = 0.15
Noise = Literal["normal", "t4", "skewed"]


@dataclass(frozen=True)
class UnusualWorld:
    """World whose classes and items are not Gaussian.

    sizes: the fewest and the most items per class
    per_source: items that are near-duplicates of each other
    known_sources: whether the catalog says which they are
    """

    name: str
    noise: Noise = "normal"
    classes: int = 14
    sizes: tuple[int, int] = (75, 75)
    per_source: int = 1
    known_sources: bool = True
    separation: float = 0.8

    def class_sizes(self) -> IntArray:
        """Return the class sizes, evenly from the fewest to the most items."""
        return np.linspace(*self.sizes, self.classes).round().astype(np.int64)

    def draw_means(self, random: np.random.Generator) -> FloatArray:
        """Draw the class means: [classes, d]."""
        return self.separation * random.normal(size=(self.classes, DIMENSIONS))

    def draw_noise(self, shape: tuple[int, ...], random: np.random.Generator) -> FloatArray:
        """Draw the noise of items around their class's mean, of variance 1 in each dimension: [..., d]."""
        full = (*shape, DIMENSIONS)
        if self.noise == "t4":
            # A multivariate t: an item is far off in all dimensions at once.
            scale = np.sqrt(random.chisquare(4, size=(*shape, 1)) / 4)
            return random.normal(size=full) / scale / np.sqrt(2)
        if self.noise == "skewed":
            drawn = random.lognormal(0, 0.8, size=full)
            return (drawn - np.exp(0.32)) / np.sqrt((np.exp(0.64) - 1) * np.exp(0.64))
        return random.normal(size=full)

    def draw(self, means: FloatArray, random: np.random.Generator) -> tuple[Catalog, Features]:
        """Draw items of the classes, as a catalog and features."""
        values, names, sources = [], [], []
        for label, (mean, size) in enumerate(zip(means, self.class_sizes().tolist(), strict=True)):
            source = np.arange(size) // self.per_source
            around = self.draw_noise((int(source[-1]) + 1,), random)[source]
            if self.per_source > 1:
                around = np.sqrt(1 - NEAR**2) * around + NEAR * random.normal(size=around.shape)
            values.append(mean + around)
            names += [f"class{label:03d}/item{item:04d}" for item in range(size)]
            sources += [f"class{label:03d}/source{number}" for number in source.tolist()]
        columns = {"item": names, "path": names, "label": [name[:8] for name in names], "split": ["test"] * len(names)}
        if self.per_source > 1 and self.known_sources:
            columns["source"] = sources
        return Catalog(pa.table(columns)), Features.from_array(names, np.concatenate(values).astype(np.float32))

    def truth(self, means: FloatArray, tasks: int, random: np.random.Generator) -> FloatArray:
        """Estimate Acc and wAcc of each method on new items of the classes: [methods, metrics]."""
        means_by_draw = []
        if self.per_source > 1:  # a task may have several items of a source: whole data sets are drawn
            for _ in range(tasks // 250):
                catalog, features = self.draw(means, random)
                drawn = sample(
                    catalog, "random", way=WAY, shot=SHOT, query=QUERY, tasks=250, seed=int(random.integers(2**31))
                )
                results = evaluate(drawn, features, list(METHODS))
                counts = [results.counts(method) for method in METHODS]
                means_by_draw.append(
                    [[count.accuracy_by_task().mean(), count.worst_by_task().mean()] for count in counts]
                )
            return np.mean(means_by_draw, axis=0)
        labels = torch.arange(WAY).repeat_interleave(SHOT)
        for _ in range(tasks // 500):
            chosen = random.permuted(np.tile(np.arange(self.classes), (500, 1)), axis=1)[:, :WAY]
            drawn_items = means[chosen][:, :, None] + self.draw_noise((500, WAY, SHOT + QUERY), random)
            rows = torch.from_numpy(drawn_items)
            support, query = rows[:, :, :SHOT].flatten(1, 2), rows[:, :, SHOT:].flatten(1, 2)
            of_method = []
            for name in METHODS:
                scores = make_method(name).scores(support, labels.expand(500, -1), query, WAY)
                right = (scores.argmax(-1).unflatten(1, (WAY, QUERY)) == torch.arange(WAY)[:, None]).double().mean(-1)
                of_method.append([100 * right.mean().item(), 100 * right.amin(1).mean().item()])
            means_by_draw.append(of_method)
        return np.mean(means_by_draw, axis=0)


# The first is from a user's report; the others change one thing at a time.
WORLDS = [
    UnusualWorld("heavy tails, unequal classes", "t4", sizes=(40, 110)),
    UnusualWorld("normal"),
    UnusualWorld("heavy tails", "t4"),
    UnusualWorld("skewed", "skewed"),
    UnusualWorld("unequal classes", sizes=(40, 110)),
    UnusualWorld("few items", sizes=(32, 32)),
    UnusualWorld("few items, heavy tails", "t4", sizes=(32, 32)),
    UnusualWorld("near-duplicates, declared", sizes=(80, 80), per_source=2),
    UnusualWorld("near-duplicates, not declared", sizes=(80, 80), per_source=2, known_sources=False),
]

Measured = dict[tuple[str, str], tuple[float, Interval]]  # by estimate and kind: the truth, and the interval


def measure_world(world: UnusualWorld, truth_tasks: int, halvings: int | None, seed: int) -> Measured:
    """Compute the intervals of one world beside the truth."""
    torch.set_num_threads(1)
    random = np.random.default_rng([zlib.crc32(world.name.encode()), seed])
    means = world.draw_means(random)
    catalog, features = world.draw(means, random)
    tasks = sample(catalog, "random", way=WAY, shot=SHOT, query=QUERY, tasks=TASKS, seed=seed)
    results = evaluate(tasks, features, list(METHODS))
    inputs = Inputs([results], [tasks], [catalog], [features], halvings=halvings, seed=seed)
    (group,) = compare(inputs, intervals=("sampler", "images"), runtime=Runtime(workers=1, progress=False)).groups
    truth = world.truth(means, truth_tasks, random)
    measured: Measured = {}
    for place, metric in enumerate(METRICS):
        name = {"acc": "Acc", "wacc": "wAcc"}[metric]
        for interval_name in ("sampler", "images"):
            # Of the first method, and of the difference between both.
            measured[name, interval_name] = (float(truth[0, place]), group.rows[0].intervals[metric][interval_name])
            (pair,) = group.pairs[metric, interval_name]
            measured[f"{name}, difference", interval_name] = (float(truth[0, place] - truth[1, place]), pair.interval)
    return measured


def measure_worlds(
    world: UnusualWorld, worlds: int, *, truth_tasks: int = 10_000, halvings: int | None = None, seed: int = 0
) -> Iterator[Measured]:
    """Measure this many worlds of a kind, on all cores."""
    work = partial(measure_world, world, truth_tasks, halvings)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(work, range(seed, seed + worlds))
