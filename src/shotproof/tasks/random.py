"""Random tasks: the field's usual benchmark, and the reference that every other sampler is measured against."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof import draws
from shotproof.catalog.catalog import Catalog
from shotproof.errors import Starved
from shotproof.tables import Meta
from shotproof.tasks.pool import Design, IntArray, Pool
from shotproof.tasks.sampler import Sampler
from shotproof.tasks.taskset import TaskSet
from shotproof.tasks.unbalanced import dirichlet_counts, require_alpha

_CLASSES, _ITEMS, _SPREAD, _COUNTS = 0, 1, 2, 3  # what a random number is drawn for
_TRIES = 100


class RandomSampler(Sampler):
    """Classes uniformly without replacement, and of each its support and query items uniformly without replacement.

    With `query_dirichlet` the way * query queries of a task are not shared equally between its classes but by a
    Dirichlet distribution with this parameter: the smaller, the less equally. A class may then have no query.
    """

    about: ClassVar[str] = "classes and items uniformly at random"

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        query_dirichlet: float | None = None,
        skip_small_classes: bool = False,
    ) -> None:
        if query_dirichlet is not None:
            require_alpha(query_dirichlet)
        pool = Pool.of(catalog)
        self.pool = pool.without_small_classes(design) if skip_small_classes else pool
        self.left_out = sorted(set(pool.classes) - set(self.pool.classes))
        self.pool.require(design)
        self.query_dirichlet = query_dirichlet
        self.design = design
        self.seed = seed

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        task = np.arange(tasks.start, tasks.stop)
        shot, query = self.design.shot, self.design.query
        classes = self.choose_classes(task)
        extra = self.about_classes(classes)
        if self.query_dirichlet is None and self.pool.sources is None:
            slot, position = np.arange(self.design.way)[:, None], np.arange(shot + query)
            random = draws.bits(self.seed, task[:, None, None], _ITEMS, slot, position)
            items = draws.distinct(random, self.pool.sizes[classes]) + self.pool.offsets[classes][..., None]
            return self.pool.task_rows(tasks, classes, items[..., :shot], items[..., shot:], extra=extra)
        drawn = [
            self._support_and_rest(t, slot, chosen)
            for t, row in zip(tasks, classes.tolist(), strict=True)
            for slot, chosen in enumerate(row)
        ]
        counts = self._query_counts(task, np.array([len(rest) for _, rest in drawn])).ravel()
        support = np.concatenate([items for items, _ in drawn])
        chosen = np.concatenate([rest[:count] for (_, rest), count in zip(drawn, counts, strict=True)])
        ways, shots = np.full(len(tasks), self.design.way), np.full(classes.size, shot)
        return self.pool.ragged_rows(tasks, ways, classes.ravel(), (support, shots), (chosen, counts), extra=extra)

    def choose_classes(self, task: IntArray) -> IntArray:
        """The classes of these tasks, [t, way]."""
        random = draws.bits(self.seed, task[:, None], _CLASSES, np.arange(self.design.way))
        return draws.distinct(random, len(self.pool.classes))

    def about_classes(self, classes: IntArray) -> dict[str, Any]:
        """Further columns of the tasks with these classes, [t, way]."""
        return {}

    def _query_counts(self, task: IntArray, most: IntArray) -> IntArray:
        """How many queries each class gets, [t, way]."""
        way, query = self.design.way, self.design.query
        if self.query_dirichlet is None:
            return np.full((len(task), way), query)
        random = draws.bits(self.seed, task[:, None], _COUNTS, np.arange(way))
        return dirichlet_counts(random, self.query_dirichlet, way * query, most.reshape(-1, way))

    def _support_and_rest(self, task: int, slot: int, chosen: int) -> tuple[IntArray, IntArray]:
        """Support of a class, and all that may be its query: items of other sources, in random order."""
        start, stop = self.pool.offsets[chosen : chosen + 2]
        shot, query = self.design.shot, self.design.query
        for attempt in range(_TRIES):
            keys = draws.bits(self.seed, task, _SPREAD, slot, attempt, np.arange(stop - start))
            order = np.argsort(keys, kind="stable") + start
            support, rest = order[:shot], order[shot:]
            if self.pool.sources is not None:
                rest = rest[~np.isin(self.pool.sources[rest], self.pool.sources[support])]
            if len(rest) >= query:
                return support, rest
        assert self.pool.sources is not None  # the pool has enough items, so only sources can fail
        raise Starved(
            f"class '{self.pool.classes[chosen]}' has {len(np.unique(self.pool.sources[start:stop]))} sources in "
            f"{stop - start} items: in {_TRIES} draws no {shot} support items left {query} query items of other "
            "sources; lower --shot or --query"
        )

    def parameters(self) -> Meta:
        """Which classes may take part, and how queries are shared."""
        unbalanced = {} if self.query_dirichlet is None else {"query_dirichlet": self.query_dirichlet}
        return ({"skip_small_classes": True} if self.left_out else {}) | unbalanced

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes left out because they are too small; with unequal queries, the share of classes that have none."""
        without = pc.equal(pc.list_value_length(tasks.table.column("query")), 0)
        unbalanced = {} if self.query_dirichlet is None else {"no_query_share": float(pc.mean(without).as_py())}
        return {"classes_left_out": self.left_out} | unbalanced
