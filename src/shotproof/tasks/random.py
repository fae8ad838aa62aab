"""Random tasks: the field's usual benchmark, and the reference that every other sampler is measured against."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from shotproof import draws
from shotproof.catalog.catalog import Catalog
from shotproof.errors import Starved
from shotproof.tables import Meta
from shotproof.tasks.pool import Design, IntArray, Pool
from shotproof.tasks.sampler import Sampler
from shotproof.tasks.taskset import TaskSet

_CLASSES, _ITEMS, _SPREAD = 0, 1, 2  # what a random number is drawn for
_TRIES = 100


class RandomSampler(Sampler):
    """Classes uniformly without replacement, and of each its support and query items uniformly without replacement."""

    about: ClassVar[str] = "classes and items uniformly at random"

    def __init__(self, catalog: Catalog, design: Design, seed: int, *, skip_small_classes: bool = False) -> None:
        pool = Pool.of(catalog)
        self.pool = pool.without_small_classes(design) if skip_small_classes else pool
        self.left_out = sorted(set(pool.classes) - set(self.pool.classes))
        self.pool.require(design)
        self.design = design
        self.seed = seed

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        task = np.arange(tasks.start, tasks.stop)
        way, shot, query = self.design.way, self.design.shot, self.design.query
        classes = draws.distinct(draws.bits(self.seed, task[:, None], _CLASSES, np.arange(way)), len(self.pool.classes))
        if self.pool.sources is None:
            slot, position = np.arange(way)[:, None], np.arange(shot + query)
            random = draws.bits(self.seed, task[:, None, None], _ITEMS, slot, position)
            items = draws.distinct(random, self.pool.sizes[classes]) + self.pool.offsets[classes][..., None]
        else:
            items = np.array(
                [
                    [self._of_different_sources(t, slot, c) for slot, c in enumerate(row)]
                    for t, row in zip(tasks, classes.tolist(), strict=True)
                ]
            )
        return self.pool.task_rows(tasks, classes, items[..., :shot], items[..., shot:])

    def _of_different_sources(self, task: int, slot: int, chosen: int) -> IntArray:
        """Support then query positions of a class, no source on both sides."""
        assert self.pool.sources is not None
        start, stop = self.pool.offsets[chosen : chosen + 2]
        sources = self.pool.sources[start:stop]
        shot, query = self.design.shot, self.design.query
        for attempt in range(_TRIES):
            keys = draws.bits(self.seed, task, _SPREAD, slot, attempt, np.arange(stop - start))
            order = np.argsort(keys, kind="stable")
            rest = order[shot:][~np.isin(sources[order[shot:]], sources[order[:shot]])]
            if len(rest) >= query:
                return np.concatenate([order[:shot], rest[:query]]) + int(start)
        raise Starved(
            f"class '{self.pool.classes[chosen]}' has {len(np.unique(sources))} sources in {len(sources)} items: in "
            f"{_TRIES} draws no {shot} support items left {query} query items of other sources; lower --shot or --query"
        )

    def parameters(self) -> Meta:
        """Which classes may take part."""
        return {"skip_small_classes": True} if self.left_out else {}

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes left out because they are too small."""
        return {"classes_left_out": self.left_out}
