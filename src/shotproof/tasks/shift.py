"""Tasks whose support and query differ by a condition (Hard-Meta-Dataset++, appendices C and D).

Queries are drawn first, among the items of which `query_where` holds; then the support, among those of which
`support_where` holds or, for the matched set without shift, `query_where`. Both sets have the same queries: a class
takes part where it can give both supports.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa

from shotproof import draws
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.draws import IntArray
from shotproof.errors import InputError, Starved
from shotproof.tables import Meta
from shotproof.tasks.pool import Design, Pool
from shotproof.tasks.predicates import BoolArray, Items
from shotproof.tasks.sampler import Sampler
from shotproof.tasks.taskset import TaskSet

_CLASSES, _QUERY, _SUPPORT = 0, 1, 2  # what a random number is drawn for
_TRIES = 100


class ShiftSampler(Sampler):
    """Classes uniformly; queries and support uniformly among the items that the conditions allow."""

    about: ClassVar[str] = "support and query drawn by conditions on columns and attributes"

    def __init__(
        self,
        catalog: Catalog,
        design: Design,
        seed: int,
        *,
        support_where: str | None = None,
        query_where: str | None = None,
        shifted: bool = True,
        attributes: Attributes | None = None,
        skip_small_classes: bool = False,
    ) -> None:
        if support_where is None or query_where is None:
            raise InputError(
                "sampler 'shift' needs a condition for both sides, e.g. --support-where blurry "
                "--query-where 'not blurry'"
            )
        whole = Pool.of(catalog)
        self.pool = whole.without_small_classes(design) if skip_small_classes else whole
        self.pool.require(design)
        self.conditions = {"support_where": support_where, "query_where": query_where}
        self.shifted, self.skip_small_classes = shifted, skip_small_classes
        self.design, self.seed = design, seed
        items = Items(catalog, attributes)
        self.may_support, self.may_query = (items.where(text)[self.pool.rows] for text in self.conditions.values())
        self.usable = self._usable()
        self.left_out = sorted(set(whole.classes) - {self.pool.classes[c] for c in self.usable})
        if len(self.usable) < design.way:
            raise Starved(self._starved(items))

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        return self._rows(tasks, self.shifted)

    def _rows(self, tasks: range, shifted: bool) -> pa.Table:
        task = np.arange(tasks.start, tasks.stop)
        way, shot, query = self.design.way, self.design.shot, self.design.query
        chosen = draws.distinct(draws.bits(self.seed, task[:, None], _CLASSES, np.arange(way)), len(self.usable))
        classes = self.usable[chosen]
        support = np.empty((len(task), way, shot), dtype=np.int64)
        queries = np.empty((len(task), way, query), dtype=np.int64)
        for row, t in enumerate(tasks):
            for slot in range(way):
                support[row, slot], queries[row, slot] = self._items(t, slot, int(classes[row, slot]), shifted)
        return self.pool.task_rows(tasks, classes, support, queries)

    def parameters(self) -> Meta:
        """The conditions, and whether the support is drawn by its own."""
        return {**self.conditions, "shifted": self.shifted, "skip_small_classes": self.skip_small_classes}

    def match(self, tasks: TaskSet) -> str:
        """The digest of the set without shift."""
        return TaskSet(self._rows(range(len(tasks)), shifted=False)).digest if self.shifted else tasks.digest

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes that cannot give the tasks, and of how many items the conditions hold."""
        return {
            "classes_left_out": self.left_out,
            "support_items": int(self.may_support.sum()),
            "query_items": int(self.may_query.sum()),
        }

    def _usable(self) -> IntArray:
        """The classes that can give queries and, whichever these are, both supports."""
        shot, query = self.design.shot, self.design.query
        queries, supports, both = (
            self._counts(which) for which in (self.may_query, self.may_support, self.may_query & self.may_support)
        )
        enough = (queries >= query + shot) & (supports - np.minimum(both, query) >= shot)
        return np.flatnonzero(enough)

    def _counts(self, which: BoolArray) -> IntArray:
        return np.bincount(self.pool.class_of[which], minlength=len(self.pool.classes))

    def _items(self, task: int, slot: int, chosen: int, shifted: bool) -> tuple[IntArray, IntArray]:
        """Support and query of a class, no source on both sides; the queries are the same with and without shift."""
        start, stop = self.pool.offsets[chosen : chosen + 2]
        positions = np.arange(start, stop)
        shot, query = self.design.shot, self.design.query
        for attempt in range(_TRIES):
            order = positions[np.argsort(draws.bits(self.seed, task, _QUERY, slot, attempt, positions - start))]
            queries = order[self.may_query[order]][:query]
            rest = positions[~np.isin(positions, queries)]
            if self.pool.sources is not None:
                rest = rest[~np.isin(self.pool.sources[rest], self.pool.sources[queries])]
            rest = rest[np.argsort(draws.bits(self.seed, task, _SUPPORT, slot, attempt, rest - start))]
            with_shift, without = (rest[may[rest]][:shot] for may in (self.may_support, self.may_query))
            if len(with_shift) == len(without) == shot:
                return (with_shift if shifted else without), queries
        raise Starved(
            f"class '{self.pool.classes[chosen]}': in {_TRIES} draws no {query} queries left {shot} support items of "
            "other sources, with and without shift; lower --shot or --query"
        )

    def _starved(self, items: Items) -> str:
        """Why there are too few classes, with the counts."""
        for side, which in (("support", self.may_support), ("query", self.may_query)):
            text = self.conditions[f"{side}_where"]
            if not which.any():
                return f"the {side} condition '{text}' holds of no item{items.strange_values(text)}"
        queries, supports = self._counts(self.may_query), self._counts(self.may_support)
        short = np.setdiff1d(np.arange(len(self.pool.classes)), self.usable)
        worst = int(short[np.argmax(np.minimum(queries, supports)[short])])
        shot, query, way = self.design.shot, self.design.query, self.design.way
        strange = "".join(items.strange_values(text) for text in self.conditions.values())
        return (
            f"{way} ways need {way} classes with {query} query items of which '{self.conditions['query_where']}' "
            f"holds, {shot} more for the set without shift, and {shot} others of which "
            f"'{self.conditions['support_where']}' holds; the data has {len(self.usable)} of "
            f"{len(self.pool.classes)}: e.g. class '{self.pool.classes[worst]}' has {queries[worst]} and "
            f"{supports[worst]}; lower --way, --shot or --query, or loosen a condition{strange}"
        )
