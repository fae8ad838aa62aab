"""Tasks whose support and query differ by a condition (Hard-Meta-Dataset++, appendices C and D).

Queries are drawn first, among the items of which `query_where` holds; then the support, among those of which
`support_where` holds or, for the matched set without shift, `matched_where`. Both sets have the same queries: a class
takes part where it can give both supports. Where there are several conditions, each task draws one of them; where items
are grouped, by their user for instance, each task has items of one group only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.conditions import ItemFacts
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import SKIP_SMALL_CLASSES, BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import TaskSet

_CLASSES, _QUERY, _SUPPORT, _CASE, _GROUP = range(5)  # what a random number is drawn for
_SIDES = ("support_where", "query_where", "matched_where")
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

    support_where: str | tuple[str, ...] = option(help="the condition on support items; several: each task draws one")
    query_where: str | tuple[str, ...] = option(help="the condition on query items; as many as on support items")
    matched_where: str | tuple[str, ...] | None = option(
        None, "the condition on support items of the matched set, by default that on query items"
    )
    group: str | None = option(None, "a column: all items of a task have one value of it, such as one user")
    shifted: bool = option(True, "False: the matched set, whose supports meet its condition")
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def __post_init__(self) -> None:
        super().__post_init__()
        sides = (self.support_where, self.query_where, self.matched_where)
        counts = {name: len(given) for name, given in zip(_SIDES, sides, strict=True) if isinstance(given, tuple)}
        if 0 in counts.values() or len({*counts.values()}) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise InputError(f"sampler '{self.name}': expected equally many conditions on each side, found {listed}")

    def cases(self) -> list[Case]:
        """The conditions of which each task draws one; one that stands alone goes with all of the others."""
        matched = self.query_where if self.matched_where is None else self.matched_where
        sides = [(one,) if isinstance(one, str) else one for one in (self.support_where, self.query_where, matched)]
        count = max(map(len, sides))
        return [Case(*texts) for texts in zip(*(side * (count // len(side)) for side in sides), strict=True)]

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Shift]:
        """Tasks of the items of these inputs that meet the conditions."""
        return BoundShift(self, inputs)


class Case(NamedTuple):
    """Conditions that go together."""

    support: str
    query: str
    matched: str


class Allowed(NamedTuple):
    """Where the conditions of a case hold: one entry per item of the pool."""

    support: BoolArray
    query: BoolArray
    matched: BoolArray


@dataclass(frozen=True)
class Source:
    """What a task is drawn from: a case, a group, and the classes that can give such tasks."""

    case: int
    group: int
    classes: IntArray


class BoundShift(BoundSampler[Shift]):
    """Draws tasks by conditions."""

    def __init__(self, sampler: Shift, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        whole = ItemPool.of(inputs.catalog)
        self.pool = whole.fitting(self.shape, sampler.skip_small_classes)
        self.facts = ItemFacts(inputs.catalog, inputs.attributes)
        self.cases = sampler.cases()
        self.allowed = [Allowed(*(self.facts.where(text)[self.pool.rows] for text in case)) for case in self.cases]
        self.groups, self.group_of = self._groups()
        self.sources = [self._sources(number) for number in range(len(self.cases))]
        used = {int(c) for sources in self.sources for source in sources for c in source.classes}
        self.left_out = sorted(set(whole.classes) - {self.pool.classes[c] for c in used})

    def draw(self, tasks: range) -> pa.Table:
        """Rows of these tasks."""
        return self._rows(tasks, self.sampler.shifted)

    def _rows(self, tasks: range, shifted: bool) -> pa.Table:
        way, shot, query = self.shape.way, self.shape.shot, self.shape.query
        classes = np.empty((len(tasks), way), dtype=np.int64)
        support = np.empty((len(tasks), way, shot), dtype=np.int64)
        queries = np.empty((len(tasks), way, query), dtype=np.int64)
        drawn = [self._source(task) for task in tasks]
        for row, (task, source) in enumerate(zip(tasks, drawn, strict=True)):
            chosen = draws.distinct(draws.bits(self.seed, task, _CLASSES, np.arange(way))[None], len(source.classes))
            classes[row] = source.classes[chosen[0]]
            for slot in range(way):
                found = self._items(task, slot, int(classes[row, slot]), source, shifted)
                support[row, slot], queries[row, slot] = found
        extra: dict[str, Any] = {}
        if len(self.cases) > 1:
            extra["case"] = pa.array(np.repeat([source.case for source in drawn], way), pa.int32())
        if self.sampler.group is not None:
            names = pa.array([self.groups[source.group] for source in drawn], pa.string())
            extra["group"] = names.take(pa.array(np.repeat(np.arange(len(drawn)), way)))
        return self.pool.task_rows(tasks, classes, support, queries, extra=extra)

    def match(self, tasks: TaskSet) -> str:
        """The digest of the set without shift."""
        return TaskSet(self._rows(range(len(tasks)), shifted=False)).digest if self.sampler.shifted else tasks.digest

    def summary(self, tasks: TaskSet) -> Meta:
        """Classes and groups that cannot give the tasks, and of how many items one of the conditions holds."""
        grouped = {}
        if self.sampler.group is not None:
            used = {source.group for sources in self.sources for source in sources}
            grouped = {"groups_left_out": sorted(set(self.groups) - {self.groups[number] for number in used})}
        return {
            "classes_left_out": self.left_out,
            **grouped,
            "support_items": int(np.any([one.support for one in self.allowed], axis=0).sum()),
            "query_items": int(np.any([one.query for one in self.allowed], axis=0).sum()),
        }

    def _groups(self) -> tuple[list[str], IntArray]:
        """The values of the column, and which of them each item of the pool has: -1 where it is empty."""
        if self.sampler.group is None:
            return [""], np.zeros(len(self.pool.rows), dtype=np.int64)
        column = self.facts.column(self.sampler.group).cast(pa.string()).take(pa.array(self.pool.rows))
        names: list[str] = sorted(pc.unique(column).drop_null().to_pylist())
        found = pc.fill_null(pc.index_in(column, value_set=pa.array(names, pa.string())), -1)
        return names, found.to_numpy().astype(np.int64)

    def _sources(self, number: int) -> list[Source]:
        """The groups with enough classes for a case."""
        found = [self._usable(self.allowed[number], group) for group in range(len(self.groups))]
        sources = [Source(number, group, one) for group, one in enumerate(found) if len(one) >= self.shape.way]
        if not sources:
            best = max(range(len(found)), key=lambda group: len(found[group])) if found else -1
            raise InsufficientData(self._why_too_few(number, best, found[best] if found else np.empty(0, np.int64)))
        return sources

    def _source(self, task: int) -> Source:
        """The case uniformly, then one of its groups."""
        of_case = self.sources[0]
        if len(self.sources) > 1:
            of_case = self.sources[int(draws.below(draws.bits(self.seed, task, _CASE), len(self.sources)))]
        if len(of_case) == 1:
            return of_case[0]
        return of_case[int(draws.below(draws.bits(self.seed, task, _GROUP), len(of_case)))]

    def _usable(self, allowed: Allowed, group: int) -> IntArray:
        """The classes that can give queries and, whichever these are, both supports."""
        shot, query = self.shape.shot, self.shape.query
        own = self.group_of == group
        queries = self._counts(allowed.query & own)
        enough = queries >= query
        for support in (allowed.support, allowed.matched):
            both = self._counts(allowed.query & support & own)
            enough &= self._counts(support & own) - np.minimum(both, query) >= shot
        return np.flatnonzero(enough)

    def _counts(self, which: BoolArray) -> IntArray:
        return np.bincount(self.pool.class_of[which], minlength=len(self.pool.classes))

    def _items(self, task: int, slot: int, chosen: int, source: Source, shifted: bool) -> tuple[IntArray, IntArray]:
        """Support and query of a class, no source on both sides; the queries are the same with and without shift."""
        start, stop = self.pool.offsets[chosen : chosen + 2]
        positions = np.arange(start, stop)[self.group_of[start:stop] == source.group]
        allowed, (shot, query) = self.allowed[source.case], (self.shape.shot, self.shape.query)
        for attempt in range(_TRIES):
            order = positions[np.argsort(draws.bits(self.seed, task, _QUERY, slot, attempt, positions - start))]
            queries = order[allowed.query[order]][:query]
            rest = positions[~np.isin(positions, queries)]
            if self.pool.sources is not None:
                rest = rest[~np.isin(self.pool.sources[rest], self.pool.sources[queries])]
            rest = rest[np.argsort(draws.bits(self.seed, task, _SUPPORT, slot, attempt, rest - start))]
            with_shift, without = (rest[may[rest]][:shot] for may in (allowed.support, allowed.matched))
            if len(with_shift) == len(without) == shot:
                return (with_shift if shifted else without), queries
        raise InsufficientData(
            f"class '{self.pool.classes[chosen]}': in {_TRIES} draws no {query} queries left {shot} support items of "
            "other sources, with and without shift; lower the shots or the queries"
        )

    def _why_too_few(self, number: int, group: int, usable: IntArray) -> str:
        """Why there are too few classes for a case, even in the best group, with the counts."""
        case, allowed = self.cases[number], self.allowed[number]
        if group < 0:
            return f"group: the column '{self.sampler.group}' is empty for all items"
        for side, text, which in zip(("support", "query", "matched support"), case, allowed, strict=True):
            if not which.any():
                return f"the {side} condition '{text}' holds of no item{self.facts.strange_values(text)}"
        own = self.group_of == group
        queries, supports, matched = (
            self._counts(one & own) for one in (allowed.query, allowed.support, allowed.matched)
        )
        short = np.setdiff1d(np.arange(len(self.pool.classes)), usable)
        worst = int(short[np.argmax(np.minimum(queries, supports)[short])])
        shot, query, way = self.shape.shot, self.shape.query, self.shape.way
        strange = "".join(self.facts.strange_values(text) for text in dict.fromkeys(case))
        if case.matched == case.query:
            no_shift, counts = f"{shot} more for the set without shift", f"{queries[worst]} and {supports[worst]}"
        else:
            no_shift = f"{shot} others of which '{case.matched}' holds for the set without shift"
            counts = f"{queries[worst]}, {matched[worst]} and {supports[worst]}"
        where = "" if self.sampler.group is None else f" in {self.sampler.group} '{self.groups[group]}', which has most"
        return (
            f"{way} ways need {way} classes with {query} query items of which '{case.query}' holds, {no_shift}, and "
            f"{shot} others of which '{case.support}' holds; the data has {len(usable)} of {len(self.pool.classes)}"
            f"{where}: e.g. class '{self.pool.classes[worst]}' has {counts}; lower the ways, the shots or the queries, "
            f"or loosen a condition{strange}"
        )
