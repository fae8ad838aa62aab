"""Tasks whose support and query differ by a condition (Hard-Meta-Dataset++, appendices C and D).

Queries are drawn first, among the items of which `query_where` holds; then the support, among those of which
`support_where` holds or, for the matched set without shift, `query_where`. Both sets have the same queries: a class
takes part where it can give both supports.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InsufficientData
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.shape import TaskShape
from shotproof.tasks.shift.conditions import ItemFacts
from shotproof.tasks.taskset import TaskSet

_CLASSES, _QUERY, _SUPPORT = 0, 1, 2  # what a random number is drawn for
_TRIES = 100


@dataclass(frozen=True)
class Shift(Sampler):
    """Classes uniformly; queries and support uniformly among the items that the conditions allow."""

    about = "support and query drawn by conditions on columns and attributes"
    paper = "Basu et al., Hard-Meta-Dataset++, ICLR 2023"
    example = "shift(support_where='blurry', query_where='not blurry')"
    takes = ("attributes",)
    axis = "conditions"
    has_placebo = True

    support_where: str = option(help="the condition on support items")
    query_where: str = option(help="the condition on query items")
    shifted: bool = option(True, "False: the matched set, whose supports meet the condition on queries")
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def check_sizes(self, catalog: Catalog, shape: TaskShape) -> None:
        """Refuse too few classes, or classes that are too small."""
        ItemPool.of(catalog).fitting(shape, self.skip_small_classes)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Shift]:
        """Tasks of the items of these inputs that meet the conditions."""
        return BoundShift(self, inputs)


class BoundShift(BoundSampler[Shift]):
    """Draws tasks by conditions."""

    def __init__(self, sampler: Shift, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        whole = ItemPool.of(inputs.catalog)
        self.pool = whole.fitting(self.shape, sampler.skip_small_classes)
        facts = ItemFacts(inputs.catalog, inputs.attributes)
        self.may_support = facts.where(sampler.support_where)[self.pool.rows]
        self.may_query = facts.where(sampler.query_where)[self.pool.rows]
        self.usable = self._usable()
        self.left_out = sorted(set(whole.classes) - {self.pool.classes[c] for c in self.usable})
        if len(self.usable) < self.shape.way:
            raise InsufficientData(self._why_too_few(facts))

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        return self._rows(tasks, self.sampler.shifted)

    def _rows(self, tasks: range, shifted: bool) -> pa.Table:
        task = np.arange(tasks.start, tasks.stop)
        way, shot, query = self.shape.way, self.shape.shot, self.shape.query
        chosen = draws.distinct(draws.bits(self.seed, task[:, None], _CLASSES, np.arange(way)), len(self.usable))
        classes = self.usable[chosen]
        support = np.empty((len(task), way, shot), dtype=np.int64)
        queries = np.empty((len(task), way, query), dtype=np.int64)
        for row, t in enumerate(tasks):
            for slot in range(way):
                support[row, slot], queries[row, slot] = self._items(t, slot, int(classes[row, slot]), shifted)
        return self.pool.task_rows(tasks, classes, support, queries)

    def match(self, tasks: TaskSet) -> str:
        """The digest of the set without shift."""
        return TaskSet(self._rows(range(len(tasks)), shifted=False)).digest if self.sampler.shifted else tasks.digest

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes that cannot give the tasks, and of how many items the conditions hold."""
        return {
            "classes_left_out": self.left_out,
            "support_items": int(self.may_support.sum()),
            "query_items": int(self.may_query.sum()),
        }

    def _usable(self) -> IntArray:
        """The classes that can give queries and, whichever these are, both supports."""
        shot, query = self.shape.shot, self.shape.query
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
        shot, query = self.shape.shot, self.shape.query
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
        raise InsufficientData(
            f"class '{self.pool.classes[chosen]}': in {_TRIES} draws no {query} queries left {shot} support items of "
            "other sources, with and without shift; lower the shots or the queries"
        )

    def _why_too_few(self, facts: ItemFacts) -> str:
        """Why there are too few classes, with the counts."""
        conditions = {"support": self.sampler.support_where, "query": self.sampler.query_where}
        for side, which in (("support", self.may_support), ("query", self.may_query)):
            if not which.any():
                text = conditions[side]
                return f"the {side} condition '{text}' holds of no item{facts.strange_values(text)}"
        queries, supports = self._counts(self.may_query), self._counts(self.may_support)
        short = np.setdiff1d(np.arange(len(self.pool.classes)), self.usable)
        worst = int(short[np.argmax(np.minimum(queries, supports)[short])])
        shot, query, way = self.shape.shot, self.shape.query, self.shape.way
        strange = "".join(facts.strange_values(text) for text in conditions.values())
        return (
            f"{way} ways need {way} classes with {query} query items of which '{conditions['query']}' holds, {shot} "
            f"more for the set without shift, and {shot} others of which '{conditions['support']}' holds; the data has "
            f"{len(self.usable)} of {len(self.pool.classes)}: e.g. class '{self.pool.classes[worst]}' has "
            f"{queries[worst]} and {supports[worst]}; lower the ways, the shots or the queries, or loosen a condition"
            f"{strange}"
        )
