"""Tasks whose support and query items meet different conditions (Hard-Meta-Dataset++, appendices C and D).

Queries are drawn first, among the items that meet `query_where`; then the support, among the items that meet
`support_where` or, in the matched set without shift, `matched_where`. Both sets have the same queries, so a class takes
part only if both supports can be drawn. If there are several conditions, each task draws one of them; if items are
grouped, for instance by user, each task has items of one group only.
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

_CLASSES, _QUERY, _SUPPORT, _CASE, _GROUP = range(5)  # purposes of random numbers
_SIDES = ("support_where", "query_where", "matched_where")
_TRIES = 100


@dataclass(frozen=True)
class Shift(Sampler):
    """Classes uniformly at random; queries and support uniformly among the items that meet the conditions."""

    about = "support and query drawn by conditions on columns and attributes"
    paper = "Basu et al., Hard-Meta-Dataset++, ICLR 2023"
    example = "shift(support_where='blurry', query_where='not blurry')"
    takes = ("attributes",)
    axis = "conditions"
    has_placebo = True

    support_where: str | tuple[str, ...] = option(
        help="condition on support items; if there are several, each task draws one"
    )
    query_where: str | tuple[str, ...] = option(help="condition on query items; as many as on support items")
    matched_where: str | tuple[str, ...] | None = option(
        None, "condition on support items of the matched set; None is the condition on query items"
    )
    group: str | None = option(None, "column whose value all items of a task share, such as the user")
    shifted: bool = option(True, "False draws the matched set without shift")
    skip_small_classes: bool = option(False, SKIP_SMALL_CLASSES)

    def __post_init__(self) -> None:
        super().__post_init__()
        sides = (self.support_where, self.query_where, self.matched_where)
        counts = {
            name: len(condition) for name, condition in zip(_SIDES, sides, strict=True) if isinstance(condition, tuple)
        }
        if 0 in counts.values() or len({*counts.values()}) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise InputError(
                f"sampler '{self.name}': expected the same number of conditions on each side, found {listed}"
            )

    def cases(self) -> list[Case]:
        """Return the cases, of which each task draws one; a single condition is combined with each of the others."""
        matched = self.query_where if self.matched_where is None else self.matched_where
        sides = [
            (condition,) if isinstance(condition, str) else condition
            for condition in (self.support_where, self.query_where, matched)
        ]
        count = max(map(len, sides))
        return [Case(*texts) for texts in zip(*(side * (count // len(side)) for side in sides), strict=True)]

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Shift]:
        """Bind the sampler to these inputs."""
        return BoundShift(self, inputs)


class Case(NamedTuple):
    """Conditions that are used together."""

    support: str
    query: str
    matched: str


class Allowed(NamedTuple):
    """Items that meet each condition of a case: masks with one entry per item of the pool."""

    support: BoolArray
    query: BoolArray
    matched: BoolArray


@dataclass(frozen=True)
class Source:
    """Case and group that a task is drawn from, with the classes that have enough items for it."""

    case: int
    group: int
    classes: IntArray


class BoundShift(BoundSampler[Shift]):
    """Shift sampler bound to its inputs."""

    def __init__(self, sampler: Shift, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        all_items = ItemPool.of(inputs.catalog)
        self.pool = all_items.fitting(self.shape, sampler.skip_small_classes)
        self.facts = ItemFacts(inputs.catalog, inputs.attributes)
        self.cases = sampler.cases()
        self.allowed = [Allowed(*(self.facts.matches(text)[self.pool.rows] for text in case)) for case in self.cases]
        self.groups, self.group_of = self._groups()
        self.sources = [self._sources(number) for number in range(len(self.cases))]
        used = {int(c) for sources in self.sources for source in sources for c in source.classes}
        self.left_out = sorted(set(all_items.classes) - {self.pool.classes[c] for c in used})

    def draw(self, tasks: range) -> pa.Table:
        """Draw the rows of these tasks."""
        return self._draw_rows(tasks, self.sampler.shifted)

    def _draw_rows(self, tasks: range, shifted: bool) -> pa.Table:
        way, shot, query = self.shape.way, self.shape.shot, self.shape.query
        classes = np.empty((len(tasks), way), dtype=np.int64)
        support = np.empty((len(tasks), way, shot), dtype=np.int64)
        queries = np.empty((len(tasks), way, query), dtype=np.int64)
        sources = [self._draw_source(task) for task in tasks]
        for row, (task, source) in enumerate(zip(tasks, sources, strict=True)):
            chosen = draws.distinct(draws.bits(self.seed, task, _CLASSES, np.arange(way))[None], len(source.classes))
            classes[row] = source.classes[chosen[0]]
            for slot in range(way):
                drawn = self._draw_items(task, slot, int(classes[row, slot]), source, shifted)
                support[row, slot], queries[row, slot] = drawn
        extra: dict[str, Any] = {}
        if len(self.cases) > 1:
            extra["case"] = pa.array(np.repeat([source.case for source in sources], way), pa.int32())
        if self.sampler.group is not None:
            names = pa.array([self.groups[source.group] for source in sources], pa.string())
            extra["group"] = names.take(pa.array(np.repeat(np.arange(len(sources)), way)))
        return self.pool.task_rows(tasks, classes, support, queries, extra=extra)

    def match(self, tasks: TaskSet) -> str:
        """Return the digest of the matched set without shift."""
        if not self.sampler.shifted:
            return tasks.digest
        return TaskSet(self._draw_rows(range(len(tasks)), shifted=False)).digest

    def summary(self, tasks: TaskSet) -> Meta:
        """Summarize which classes and groups are left out, and how many items meet at least one condition."""
        grouped = {}
        if self.sampler.group is not None:
            used = {source.group for sources in self.sources for source in sources}
            grouped = {"groups_left_out": sorted(set(self.groups) - {self.groups[number] for number in used})}
        return {
            "classes_left_out": self.left_out,
            **grouped,
            "support_items": int(np.any([case.support for case in self.allowed], axis=0).sum()),
            "query_items": int(np.any([case.query for case in self.allowed], axis=0).sum()),
        }

    def _groups(self) -> tuple[list[str], IntArray]:
        """Return the groups, and the index of the group of each item of the pool: -1 if it has none."""
        if self.sampler.group is None:
            return [""], np.zeros(len(self.pool.rows), dtype=np.int64)
        column = self.facts.column(self.sampler.group).cast(pa.string()).take(pa.array(self.pool.rows))
        names: list[str] = sorted(pc.unique(column).drop_null().to_pylist())
        indices = pc.fill_null(pc.index_in(column, value_set=pa.array(names, pa.string())), -1)
        return names, indices.to_numpy().astype(np.int64)

    def _sources(self, case: int) -> list[Source]:
        """Return the groups that have enough classes for a case."""
        by_group = [self._usable_classes(self.allowed[case], group) for group in range(len(self.groups))]
        sources = [
            Source(case, group, classes) for group, classes in enumerate(by_group) if len(classes) >= self.shape.way
        ]
        if not sources:
            best = max(range(len(by_group)), key=lambda group: len(by_group[group])) if by_group else -1
            raise InsufficientData(
                self._explain_too_few(case, best, by_group[best] if by_group else np.empty(0, np.int64))
            )
        return sources

    def _draw_source(self, task: int) -> Source:
        """Draw a case uniformly, then one of its groups."""
        sources = self.sources[0]
        if len(self.sources) > 1:
            sources = self.sources[int(draws.below(draws.bits(self.seed, task, _CASE), len(self.sources)))]
        if len(sources) == 1:
            return sources[0]
        return sources[int(draws.below(draws.bits(self.seed, task, _GROUP), len(sources)))]

    def _usable_classes(self, allowed: Allowed, group: int) -> IntArray:
        """Return the classes with enough items for the queries and, whichever these are, for both supports."""
        shot, query = self.shape.shot, self.shape.query
        in_group = self.group_of == group
        queries = self._count_by_class(allowed.query & in_group)
        enough = queries >= query
        for support in (allowed.support, allowed.matched):
            both = self._count_by_class(allowed.query & support & in_group)
            enough &= self._count_by_class(support & in_group) - np.minimum(both, query) >= shot
        return np.flatnonzero(enough)

    def _count_by_class(self, mask: BoolArray) -> IntArray:
        return np.bincount(self.pool.class_of[mask], minlength=len(self.pool.classes))

    def _draw_items(
        self, task: int, slot: int, chosen: int, source: Source, shifted: bool
    ) -> tuple[IntArray, IntArray]:
        """Draw support and query of a class, without a source on both sides; the queries do not depend on `shifted`."""
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
            with_shift, without_shift = (rest[mask[rest]][:shot] for mask in (allowed.support, allowed.matched))
            if len(with_shift) == len(without_shift) == shot:
                return (with_shift if shifted else without_shift), queries
        raise InsufficientData(
            f"class '{self.pool.classes[chosen]}': in {_TRIES} draws, {query} queries never left {shot} support items "
            "of other sources, with and without shift: lower the shots or the queries"
        )

    def _explain_too_few(self, number: int, group: int, usable: IntArray) -> str:
        """Explain, with counts, why there are too few classes for a case even in the best group."""
        case, allowed = self.cases[number], self.allowed[number]
        if group < 0:
            return f"group: the column '{self.sampler.group}' is empty for all items"
        for side, text, mask in zip(("support", "query", "matched support"), case, allowed, strict=True):
            if not mask.any():
                return f"no item meets the {side} condition '{text}'{self.facts.absent_values(text)}"
        in_group = self.group_of == group
        queries, supports, matched = (
            self._count_by_class(mask & in_group) for mask in (allowed.query, allowed.support, allowed.matched)
        )
        short = np.setdiff1d(np.arange(len(self.pool.classes)), usable)
        worst = int(short[np.argmax(np.minimum(queries, supports)[short])])
        shot, query, way = self.shape.shot, self.shape.query, self.shape.way
        absent_values = "".join(self.facts.absent_values(text) for text in dict.fromkeys(case))
        if case.matched == case.query:
            no_shift, counts = f"{shot} more for the set without shift", f"{queries[worst]} and {supports[worst]}"
        else:
            no_shift = f"{shot} others that meet '{case.matched}' for the set without shift"
            counts = f"{queries[worst]}, {matched[worst]} and {supports[worst]}"
        in_group_name = (
            "" if self.sampler.group is None else f" in {self.sampler.group} '{self.groups[group]}', the best group"
        )
        return (
            f"{way} ways need {way} classes with {query} query items that meet '{case.query}', {no_shift}, and "
            f"{shot} others that meet '{case.support}'; the data has {len(usable)} of {len(self.pool.classes)}"
            f"{in_group_name}: e.g. class '{self.pool.classes[worst]}' has {counts}; lower the ways, the shots or the "
            f"queries, or relax a condition{absent_values}"
        )
