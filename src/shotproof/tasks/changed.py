"""Interventions: the tasks of another set, with one thing changed in the items of one side or of both.

Items keep their names. What was done to them stands beside them, in the columns `support_change` and `query_change`.
If a task plants a context in the supports of a class, as `iid` does, backgrounds of this class are from that context.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.changed_catalog import can_be_changed, changed_names
from shotproof.catalog.contexts import contexts_of
from shotproof.changes.change import BackgroundChange, changes
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.core.records import Meta
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import BoundSampler, Sampler, SamplerInputs, samplers
from shotproof.tasks.taskset import SCHEMA, SIDES, UNCHANGED_ITEM, TaskSet, change_column

Side = Literal["query", "support", "both"]

# Plates that each item may get from a class. The next one is shown if the first is in the support set of the task,
# whose background would then be there twice, and on halves of the data if the first is not in the half: with four, 15
# of 16 items have a plate in their half. Two are enough of a rival: on halves any other class of the task will do.
CANDIDATES = {"same": 4, "random": 4, "rival": 2}
MIN_CANDIDATES = 2
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
    most_items: int = option(
        30_000,
        "most changed items to encode so that tasks can be drawn again on other images; if there are more, only those "
        "of the tasks at hand are, and the `images` interval is refused",
        least=1,
    )

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
            sampler = samplers.make({"name": recorded.name, **recorded.options})
            assert isinstance(sampler, Changed)
            change = changes.make(sampler.change)
            split = catalog.in_split(tasks.record.split)
            if not isinstance(change, BackgroundChange):
                return cls(split.item_column, pa.repeat(change.spelling, len(split)), is_complete=True)
            plates = Plates.of(split, change)
            contexts = plates.contexts_of_variants(tasks.table)
            if plates.count_variants(contexts) <= sampler.most_items:
                items, spellings = plates.every_variant(contexts)
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
            self.plates = Plates.of(catalog, self.change, inputs.catalog)

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
    contexts: pa.Array  # context of each position, null if it has none
    is_drawn: BoolArray  # whether a position is in the data that the tasks are drawn from: all, or a half

    @classmethod
    def of(cls, catalog: Catalog, change: BackgroundChange, drawn: Catalog | None = None) -> Plates:
        """Find the items of a catalog that can be taken apart.

        Args:
            catalog: items whose backgrounds may be shown
            change: what is changed
            drawn: the items that tasks are drawn from; by default all
        """
        pool = ItemPool.of(catalog)
        has_contexts = "context" in catalog.table.column_names
        names = contexts_of(catalog, "context") if has_contexts else [None] * len(catalog)
        contexts = pa.array(names, pa.string()).take(pa.array(pool.rows))
        is_drawn = np.ones(len(pool.items), dtype=bool)
        if drawn is not None and drawn is not catalog:
            is_drawn = pc.is_in(pool.items, value_set=drawn.item_column).to_numpy(zero_copy_only=False)
        return cls(change, pool, can_be_changed(catalog, change)[pool.rows], contexts, is_drawn)

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
            labels = pc.index_in(table.column("label"), value_set=pa.array(self.pool.classes)).to_numpy()
            planted = self._planted(table)
            candidates = np.empty((len(items), 0), dtype=np.int64)
            for shown in [row] if self.change.plates == "same" else self._rivals(table, row, counts, seed):
                lacking = np.flatnonzero(~self._is_drawn(candidates).any(axis=1))
                if not len(lacking):
                    break
                classes, contexts = labels[shown[lacking]], planted[shown[lacking]]
                of_class = self.of_class(positions[lacking], classes, contexts)
                self._require_plates(of_class, classes, contexts)
                if not candidates.shape[1]:
                    candidates = of_class
                else:
                    is_better = self._is_drawn(of_class).any(axis=1)
                    candidates[lacking[is_better]] = of_class[is_better]
        # The first that is not in the support set; among these, the first in the data that tasks are drawn from.
        drawback = 4 * (candidates < 0) + 2 * self._is_in_support(table, row, candidates) + ~self._is_drawn(candidates)
        return self._spelled(candidates[np.arange(len(items)), drawback.argmin(axis=1)])

    def contexts_of_variants(self, table: pa.Table) -> IntArray:
        """Return the contexts that a class's backgrounds may be from in such tasks, as codes; -1 stands for any."""
        is_planted = self.change.plates in ("same", "rival") and (self._planted(table) >= 0).any()
        return np.arange(len(self._context_codes.dictionary)) if is_planted else np.array([-1])

    def count_variants(self, contexts: IntArray) -> int:
        """Return how many variants `every_variant` returns at most."""
        other_classes = len(self.pool.classes) - 1 if self.change.plates == "rival" else 1
        return int(self.usable.sum()) * CANDIDATES.get(self.change.plates or "", 1) * other_classes * len(contexts)

    def every_variant(self, contexts: IntArray) -> tuple[pa.Array, pa.Array]:
        """Return every item with every change that a task may ask for: names and spellings, end to end.

        Args:
            contexts: see `contexts_of_variants`
        """
        positions = np.flatnonzero(self.usable)
        if self.change.plates is None:
            items = self.pool.items.take(pa.array(positions))
            return items, pa.repeat(self.change.spelling, len(items))
        if self.change.plates == "random":
            candidates = self._of_any_class(positions)
        else:
            own = self.pool.class_of[positions]
            classes = [own] if self.change.plates == "same" else self._other_classes(own)
            cells = [(of_class, np.full(len(own), context)) for of_class in classes for context in contexts]
            candidates = np.concatenate([self.of_class(positions, *cell) for cell in cells])
            positions = np.tile(positions, len(cells))
        row, column = np.nonzero(candidates >= 0)  # tasks with classes that have too few cannot be changed
        return self.pool.items.take(pa.array(positions[row])), self._spelled(candidates[row, column])

    def of_class(self, positions: IntArray, classes: IntArray, contexts: IntArray) -> IntArray:
        """Choose the candidates of each item, [items, candidates], with -1 at the end if there are fewer.

        Args:
            positions: the items, [items]
            classes, contexts: class and context that the plates of each item are from, [items]; context -1 is any
        """
        assert self.change.plates is not None
        most = CANDIDATES[self.change.plates]
        chosen = np.full((len(positions), most), -1)
        for number, context in np.unique(np.stack([classes, contexts], axis=1), axis=0):
            rows = np.flatnonzero((classes == number) & (contexts == context))
            members = np.arange(self.pool.offsets[number], self.pool.offsets[number + 1])
            members = members[self.usable[members]]
            if context >= 0:
                members = members[self._context_of[members] == context]
            if len(members) < MIN_CANDIDATES:
                continue
            keys = draws.bits(self.change.seed, positions[rows, None], members)
            is_itself = members == positions[rows, None]
            if self.pool.sources is not None:
                is_itself |= self.pool.sources[members] == self.pool.sources[positions[rows], None]
            order = np.argsort(np.where(is_itself, np.iinfo(np.uint64).max, keys), axis=1, kind="stable")[:, :most]
            others = (~is_itself).sum(axis=1, keepdims=True)
            is_plate = (np.arange(order.shape[1]) < others) & (others >= MIN_CANDIDATES)
            chosen[rows, : order.shape[1]] = np.where(is_plate, members[order], -1)
        return chosen

    def _require_plates(self, candidates: IntArray, classes: IntArray, contexts: IntArray) -> None:
        """Raise InsufficientData if the class that an item needs plates of has too few others for it."""
        lacking = candidates[:, 0] < 0
        if lacking.any():
            number, context = (int(codes[np.argmax(lacking)]) for codes in (classes, contexts))
            members = slice(self.pool.offsets[number], self.pool.offsets[number + 1])
            is_usable = self.usable[members] & ((context < 0) | (self._context_of[members] == context))
            place = f" in context '{self._context_codes.dictionary[context]}'" if context >= 0 else ""
            sources = "" if self.pool.sources is None else ", of other sources"
            raise InsufficientData(
                f"change '{self.change.name}': class '{self.pool.classes[number]}' has "
                f"{counted(int(is_usable.sum()), 'item')} with a background{place}: each item needs {MIN_CANDIDATES} "
                f"others{sources}"
            )

    def _of_any_class(self, positions: IntArray) -> IntArray:
        """Choose the candidates of each item among all plates, [items, candidates]."""
        sources = np.arange(len(self.usable)) if self.pool.sources is None else self.pool.sources
        members = np.flatnonzero(self.usable)
        members = members[np.argsort(sources[members], kind="stable")]
        first, last = (np.searchsorted(sources[members], sources[positions], side) for side in ("left", "right"))
        others = len(members) - (last - first)
        fewest = int(others.min(initial=len(members)))
        if fewest < MIN_CANDIDATES:
            raise InsufficientData(f"change '{self.change.name}': only {len(members)} items have a background")
        counters = (_ANY, positions[:, None], np.arange(min(CANDIDATES["random"], fewest)))
        # Drawn among all items of other sources: from the item's own source on, places move by as many as it has.
        place = draws.distinct(draws.bits(self.change.seed, *counters), others)
        return members[place + np.where(place >= first[:, None], (last - first)[:, None], 0)]

    def _rivals(self, table: pa.Table, row: IntArray, counts: IntArray, seed: int) -> Iterator[IntArray]:
        """Yield the row of another class of the task for each item, [items]: the chosen one, then the others."""
        task, slot = (table.column(name).to_numpy().astype(np.int64) for name in ("task", "slot"))
        first = np.maximum.accumulate(np.where(slot == 0, np.arange(len(table)), 0))
        ways = np.bincount(first, minlength=len(table))[first]
        place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        step = 1 + draws.below(draws.bits(seed, _RIVAL, task[row], slot[row], place), ways[row] - 1)
        for turn in range(int(ways.max(initial=2)) - 1):
            yield first[row] + (slot[row] + 1 + (step - 1 + turn) % (ways[row] - 1)) % ways[row]

    def _planted(self, table: pa.Table) -> IntArray:
        """Return the context that all supports of a row have, if the task planted it, as a code; else -1: [rows]."""
        support = table.column("support")
        planted = pc.index_in(table.column("attribute"), value_set=self._context_codes.dictionary)
        planted = pc.fill_null(planted, -1).to_numpy().astype(np.int64)
        counts = pc.list_value_length(support).to_numpy()
        shown = np.append(self._context_of, -1)[self._find(pc.list_flatten(support))]
        row = np.repeat(np.arange(len(table)), counts)
        differs = np.bincount(row, shown != planted[row], minlength=len(table))
        return np.where(differs == 0, planted, -1)

    def _other_classes(self, own: IntArray) -> list[IntArray]:
        """Return, for each step, another class for each item."""
        count = len(self.pool.classes)
        return [(own + step) % count for step in range(1, count)]

    def _is_drawn(self, candidates: IntArray) -> BoolArray:
        """Return whether each candidate is in the data that tasks are drawn from; -1 is not."""
        drawn: BoolArray = (candidates >= 0) & self.is_drawn[candidates]
        return drawn

    def _is_in_support(self, table: pa.Table, row: IntArray, candidates: IntArray) -> BoolArray:
        """Return whether each candidate [items, candidates] is in the support sets of its task."""
        task, support = table.column("task").to_numpy().astype(np.int64), table.column("support")
        support_task = np.repeat(task, pc.list_value_length(support).to_numpy())
        shown = support_task * len(self.usable) + self._find(pc.list_flatten(support))
        within: BoolArray = np.isin(task[row, None] * len(self.usable) + candidates, shown)
        return within

    @cached_property
    def _context_codes(self) -> pa.DictionaryArray:
        return self.contexts.dictionary_encode()

    @cached_property
    def _context_of(self) -> IntArray:
        """Return the code of each position's context, -1 if it has none."""
        codes: IntArray = pc.fill_null(self._context_codes.indices, -1).to_numpy().astype(np.int64)
        return codes

    def _find(self, items: pa.Array) -> IntArray:
        """Return where items are in the pool, [items]; -1 if they are not."""
        indices: IntArray = pc.fill_null(pc.index_in(items, value_set=self.pool.items), -1).to_numpy().astype(np.int64)
        return indices

    def _positions(self, items: pa.Array) -> IntArray:
        """Return where items are in the pool. Raise InputError if one of them cannot be taken apart."""
        positions = self._find(items)
        is_usable = (positions >= 0) & self.usable[positions]
        if not is_usable.all():
            first, count = items[int(np.argmin(is_usable))].as_py(), len(pc.unique(items.filter(pa.array(~is_usable))))
            raise InputError(
                f"change '{self.change.name}': {counted(count, 'item')} of the tasks have no mask and no recorded "
                f"background, e.g. '{first}': draw the tasks from a catalog of items that have one"
            )
        return positions

    def _spelled(self, plates: IntArray) -> pa.Array:
        """Spell the change with each of these plates, [items]."""
        used, index = np.unique(plates, return_inverse=True)
        names = self.pool.items.take(pa.array(used)).to_pylist()
        spellings = [replace(self.change, plate=name).spelling for name in names]
        return pa.array(spellings, pa.string()).take(pa.array(index.ravel()))
