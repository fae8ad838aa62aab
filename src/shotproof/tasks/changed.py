"""Interventions: the tasks of another set, with one thing changed in the items of one side or of both.

Items keep their names. What was done to them stands beside them, in the columns `support_change` and `query_change`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import can_be_changed, changed_names
from shotproof.changes.change import BackgroundChange, changes
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs
from shotproof.tasks.taskset import SCHEMA, SIDES, UNCHANGED_ITEM, TaskSet, change_column

Side = Literal["query", "support", "both"]

# Plates that each item may get from a class: the second one if the first is in the support set of the task, whose
# background would then be there twice.
CANDIDATES = 2
# Variants of items that are made for all tasks that may be drawn; if there are more, only those of the tasks at hand.
MOST_VARIANTS = 30_000
# Streams of random numbers beside those of the plates.
_RIVAL, _ANY = 1, 2


@dataclass(frozen=True)
class Changed(Sampler):
    """The tasks of `like`, item by item, with one thing changed.

    Both sets have the same items, so whatever accuracy is lost is lost because of the change. Changed on both sides,
    support and query sets agree again: what is then lost is due to the change itself and not to the difference.
    """

    about = "the tasks of another set with one thing changed in their items, e.g. blur or another background"
    example = "changed(change='blur(severity=3)')"
    takes = ("like", "plates")
    needs = ("like",)
    axis = "changes"

    change: str = option("blur", "what is changed, e.g. blur(severity=5) or mixed-rival")
    side: Side = option("query", "which items are changed: those of the query sets, the support sets, or both")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "change", changes.make(self.change).spelling)

    def bound(self, inputs: SamplerInputs) -> BoundSampler[Changed]:
        """Return the sampler that changes the tasks of `like`."""
        return BoundChanged(self, inputs)

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the sides whose items are changed."""
        return SIDES if self.side == "both" else (self.side,)


@dataclass(frozen=True)
class Variants:
    """Changed items that features are needed of.

    items, changes: names of items and the spellings of their changes, [n]
    is_complete: whether tasks that are drawn again from the same data need no others
    """

    items: pa.Array
    changes: pa.Array
    is_complete: bool

    @classmethod
    def of(cls, tasks: TaskSet, catalog: Catalog) -> Variants:
        """Find the changed items of a task set, and all others that it may have if there are not too many.

        Args:
            tasks: a changed task set
            catalog: the catalog that it was drawn from
        """
        recorded = tasks.record.sampler
        if recorded is not None and recorded.name == "changed":
            change = changes.make(str(recorded.options["change"]))
            split = catalog.in_split(tasks.record.split)
            if not isinstance(change, BackgroundChange):
                return cls(split.item_column, pa.repeat(change.spelling, len(split)), is_complete=True)
            plates = Plates.of(split, change)
            if plates.count_variants() <= MOST_VARIANTS:
                items, spellings = plates.every_variant()
                return cls(items, spellings, is_complete=True)
        pairs = [(pc.list_flatten(tasks.table.column(side)), tasks.changes(side)) for side in SIDES]
        table = pa.concat_tables(
            pa.table({"item": items, "change": spellings}) for items, spellings in pairs if spellings is not None
        )
        table = table.filter(pc.not_equal(table.column("change"), UNCHANGED_ITEM))
        distinct = table.group_by(["item", "change"], use_threads=False).aggregate([]).combine_chunks()
        items, spellings = (distinct.column(name).combine_chunks() for name in ("item", "change"))
        return cls(items, spellings, is_complete=False)

    @property
    def names(self) -> pa.Array:
        """Return the names that features have for them, [n]."""
        return changed_names(self.items, self.changes)


class BoundChanged(BoundSampler[Changed]):
    """Notes the change of each item of a task set."""

    def __init__(self, sampler: Changed, inputs: SamplerInputs) -> None:
        super().__init__(sampler, inputs)
        self.change = changes.make(sampler.change)
        self.change.require_medium(inputs.catalog.medium)
        catalog = inputs.catalog if inputs.plates is None else inputs.plates
        self.plates = None
        if isinstance(self.change, BackgroundChange):
            self.plates = Plates.of(catalog, self.change)

    def draw(self, tasks: range) -> pa.Table:
        """Return the rows of these tasks with their changes."""
        assert self.like is not None
        start, stop = self.like.starts[[tasks.start, tasks.stop]]
        table = self.like.table.slice(start, stop - start).select(SCHEMA.names)
        for side in self.sampler.sides:
            items = pc.list_flatten(table.column(side)).combine_chunks()
            if self.plates is None:
                spellings = pa.repeat(self.change.spelling, len(items))
            else:
                spellings = self.plates.spellings(table, side, items, self.seed)
            counts = pc.list_value_length(table.column(side)).to_numpy()
            offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
            table = table.append_column(change_column(side), pa.ListArray.from_arrays(offsets, spellings))
        return table

    def summary(self, tasks: TaskSet) -> Meta:
        """Name the classes that `like` left out."""
        assert self.like is not None
        return {"classes_left_out": list(self.like.record.classes_left_out)}


@dataclass(frozen=True)
class Plates:
    """Backgrounds that a change shows, chosen from the items of a split."""

    change: BackgroundChange
    pool: ItemPool
    usable: BoolArray  # whether a position has layers

    @classmethod
    def of(cls, catalog: Catalog, change: BackgroundChange) -> Plates:
        """Find the items of a catalog that can be taken apart."""
        pool = ItemPool.of(catalog)
        return cls(change, pool, can_be_changed(catalog, change)[pool.rows])

    def spellings(self, table: pa.Table, side: str, items: pa.Array, seed: int) -> pa.Array:
        """Return the change of each item of one side, [items], with its plate if it needs one."""
        positions = self._positions(items)
        if self.change.plates is None:
            return pa.repeat(self.change.spelling, len(items))
        counts = pc.list_value_length(table.column(side)).to_numpy()
        row = np.repeat(np.arange(len(table)), counts)
        if self.change.plates == "random":
            candidates = self._of_any_class(positions)
        else:
            own = self.pool.class_of[positions]
            classes = own if self.change.plates == "same" else self._rivals(table, row, own, counts, seed)
            candidates = self.of_class(positions, classes)
            self._require_plates(candidates, classes)
        is_shown = self._is_in_support(table, row, candidates)
        return self._spelled(np.where(is_shown[:, 0] & ~is_shown[:, 1], candidates[:, 1], candidates[:, 0]))

    def count_variants(self) -> int:
        """Return how many variants `every_variant` returns."""
        others = {None: 1, "same": CANDIDATES, "random": CANDIDATES}
        rivals = CANDIDATES * (len(self.pool.classes) - 1)
        return int(self.usable.sum()) * others.get(self.change.plates, rivals)

    def every_variant(self) -> tuple[pa.Array, pa.Array]:
        """Return every item with every change that a task may ask for: names and spellings, end to end."""
        positions = np.flatnonzero(self.usable)
        if self.change.plates is None:
            items = self.pool.items.take(pa.array(positions))
            return items, pa.repeat(self.change.spelling, len(items))
        if self.change.plates == "random":
            candidates = self._of_any_class(positions)
        else:
            own = self.pool.class_of[positions]
            classes = [own] if self.change.plates == "same" else self._other_classes(own)
            candidates = np.concatenate([self.of_class(positions, of_class) for of_class in classes])
            has_plates = (candidates >= 0).all(axis=1)  # tasks with classes that have too few cannot be changed
            positions, candidates = np.tile(positions, len(classes))[has_plates], candidates[has_plates]
        items = self.pool.items.take(pa.array(np.repeat(positions, CANDIDATES)))
        return items, self._spelled(candidates.ravel())

    def of_class(self, positions: IntArray, classes: IntArray) -> IntArray:
        """Choose the candidates of each item among the plates of a class, [items, CANDIDATES]; -1 if it has too few."""
        chosen = np.full((len(positions), CANDIDATES), -1)
        for number in np.unique(classes):
            rows = np.flatnonzero(classes == number)
            members = np.arange(self.pool.offsets[number], self.pool.offsets[number + 1])
            members = members[self.usable[members]]
            if len(members) < CANDIDATES:
                continue
            keys = draws.bits(self.change.seed, positions[rows, None], members)
            is_itself = members == positions[rows, None]
            if self.pool.sources is not None:
                is_itself |= self.pool.sources[members] == self.pool.sources[positions[rows], None]
            order = np.argsort(np.where(is_itself, np.iinfo(np.uint64).max, keys), axis=1, kind="stable")
            has_enough = (~is_itself).sum(axis=1) >= CANDIDATES
            chosen[rows[has_enough]] = members[order[has_enough, :CANDIDATES]]
        return chosen

    def _require_plates(self, candidates: IntArray, classes: IntArray) -> None:
        """Raise InsufficientData if the class that an item needs plates of has too few others for it."""
        lacking = (candidates < 0).any(axis=1)
        if lacking.any():
            number = int(classes[np.argmax(lacking)])
            count = int(self.usable[self.pool.offsets[number] : self.pool.offsets[number + 1]].sum())
            sources = "" if self.pool.sources is None else ", of other sources"
            raise InsufficientData(
                f"change '{self.change.name}': class '{self.pool.classes[number]}' has {counted(count, 'item')} with a "
                f"background: each item needs {CANDIDATES} others{sources}"
            )

    def _of_any_class(self, positions: IntArray) -> IntArray:
        """Choose the candidates of each item among all plates, [items, CANDIDATES]."""
        sources = np.arange(len(self.usable)) if self.pool.sources is None else self.pool.sources
        members = np.flatnonzero(self.usable)
        members = members[np.argsort(sources[members], kind="stable")]
        first, last = (np.searchsorted(sources[members], sources[positions], side) for side in ("left", "right"))
        others = len(members) - (last - first)
        if len(others) and others.min() < CANDIDATES:
            raise InsufficientData(f"change '{self.change.name}': only {len(members)} items have a background")
        counters = (_ANY, positions[:, None], np.arange(CANDIDATES))
        # Drawn among all items of other sources: from the item's own source on, places move by as many as it has.
        place = draws.distinct(draws.bits(self.change.seed, *counters), others)
        return members[place + np.where(place >= first[:, None], (last - first)[:, None], 0)]

    def _rivals(self, table: pa.Table, row: IntArray, own: IntArray, counts: IntArray, seed: int) -> IntArray:
        """Choose another class of the task for each item, [items]."""
        task, slot = (table.column(name).to_numpy().astype(np.int64) for name in ("task", "slot"))
        first = np.maximum.accumulate(np.where(slot == 0, np.arange(len(table)), 0))
        ways = np.bincount(first, minlength=len(table))[first]
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        step = 1 + draws.below(draws.bits(seed, _RIVAL, task[row], slot[row], place), ways[row] - 1)
        labels = pc.index_in(table.column("label"), value_set=pa.array(self.pool.classes)).to_numpy()
        rivals: IntArray = labels[first[row] + (slot[row] + step) % ways[row]]
        return rivals

    def _other_classes(self, own: IntArray) -> list[IntArray]:
        """Return, for each step, another class for each item."""
        count = len(self.pool.classes)
        return [(own + step) % count for step in range(1, count)]

    def _is_in_support(self, table: pa.Table, row: IntArray, candidates: IntArray) -> BoolArray:
        """Return whether each candidate [items, CANDIDATES] is in the support sets of its task."""
        task, support = table.column("task").to_numpy().astype(np.int64), table.column("support")
        support_task = np.repeat(task, pc.list_value_length(support).to_numpy())
        shown = support_task * len(self.usable) + self._find(pc.list_flatten(support))
        within: BoolArray = np.isin(task[row, None] * len(self.usable) + candidates, shown)
        return within

    def _find(self, items: pa.Array) -> IntArray:
        """Return where items are in the pool, [items]; -1 if they are not."""
        found: IntArray = pc.fill_null(pc.index_in(items, value_set=self.pool.items), -1).to_numpy().astype(np.int64)
        return found

    def _positions(self, items: pa.Array) -> IntArray:
        """Return where items are in the pool. Raise InputError if one of them cannot be taken apart."""
        known = self._find(items)
        is_usable = (known >= 0) & self.usable[known]
        if not is_usable.all():
            first, count = items[int(np.argmin(is_usable))].as_py(), len(pc.unique(items.filter(pa.array(~is_usable))))
            raise InputError(
                f"change '{self.change.name}': {counted(count, 'item')} of the tasks have no mask and no recorded "
                f"background, e.g. '{first}': draw the tasks from a catalog of items that have one"
            )
        return known

    def _spelled(self, plates: IntArray) -> pa.Array:
        """Spell the change with each of these plates, [items]."""
        used, index = np.unique(plates, return_inverse=True)
        names = self.pool.items.take(pa.array(used)).to_pylist()
        spellings = [replace(self.change, plate=name).spelling for name in names]
        return pa.array(spellings, pa.string()).take(pa.array(index.ravel()))
