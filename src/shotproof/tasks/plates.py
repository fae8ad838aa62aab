"""Plates: items whose backgrounds are shown in changed tasks, preferably none that its task shows already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.catalog import MIXTURE_COLUMNS, PLATE, Catalog
from shotproof.catalog.changed_catalog import can_be_changed
from shotproof.catalog.contexts import contexts_of
from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.nouns import counted
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.taskset import UNCHANGED_ITEM, change_column

# Plates that each item may get from a class, of different backgrounds. The next one is shown if the task shows the
# first one's background on its other side, and on halves of the data if the first is not in the half: with four, 15 of
# 16 items have a plate in their half. Two are enough of a rival: on halves any other class of the task will do.
CANDIDATES = {"same": 4, "random": 4, "rival": 2}
MIN_CANDIDATES = 2
CONTEXT = "context"  # column with the contexts that tasks plant, if none is named
# Streams of random numbers beside those of the plates.
_RIVAL, _ANY, _MEMBER = 1, 2, 3


def background_names(catalog: Catalog) -> pa.Array:
    """Return what the background of each item is from, [n]; null if no other item has the same background.

    It is a recording, if backgrounds were mixed with foregrounds, an image likewise, and else the source of the item.
    """
    columns = [PLATE, "source"] if catalog.record.mix is not None else ["source"]
    columns = [MIXTURE_COLUMNS[1]] if catalog.medium == "sound" else columns
    for name in columns:
        if name in catalog.table.column_names:
            return catalog.table.column(name).cast(pa.string()).combine_chunks()
    return pa.nulls(len(catalog), pa.string())


@dataclass(frozen=True)
class Plates:
    """Backgrounds that a change shows, chosen from the items of a split."""

    change: BackgroundChange
    pool: ItemPool
    is_usable: BoolArray  # whether a position has layers
    is_drawn: BoolArray  # whether a position is in the data that the tasks are drawn from: all, or a half
    contexts: pa.Array  # context of each position, null if it has none
    backgrounds: IntArray  # the first position with the same background as each position
    copies: int = 1  # plates that each item is shown on, one after the other

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        change: BackgroundChange,
        drawn: Catalog | None = None,
        context_column: str | None = None,
        copies: int = 1,
    ) -> Plates:
        """Find the items of a catalog that can be taken apart.

        Args:
            catalog: items whose backgrounds may be shown
            change: what is changed
            drawn: the items that tasks are drawn from; by default all
            context_column: column with the contexts that tasks plant; by default `context`, if there is one
            copies: number of plates that each item is shown on
        """
        pool = ItemPool.of(catalog)
        column = context_column or CONTEXT
        has_contexts = context_column is not None or CONTEXT in catalog.table.column_names
        names = contexts_of(catalog, column) if has_contexts else [None] * len(catalog)
        order = pa.array(pool.rows)
        is_drawn = np.ones(len(pool.items), dtype=bool)
        if drawn is not None and drawn is not catalog:
            is_drawn = pc.is_in(pool.items, value_set=drawn.item_column).to_numpy(zero_copy_only=False)
        return cls(
            change,
            pool,
            can_be_changed(catalog, change)[pool.rows],
            is_drawn,
            pa.array(names, pa.string()).take(order),
            _first_of_each(background_names(catalog).take(order)),
            copies,
        )

    @property
    def per_item(self) -> int:
        """Return how many changes `spellings` returns of each item: one per plate, or one if no plate is shown."""
        return 1 if self.change.plates is None else self.copies

    @property
    def candidates(self) -> int:
        """Return how many plates an item may get from a class: one more than are shown, or more."""
        return 1 if self.change.plates is None else max(CANDIDATES[self.change.plates], self.copies + 1)

    @property
    def fewest(self) -> int:
        """Return how many other backgrounds an item needs."""
        return max(MIN_CANDIDATES, self.copies)

    def spellings(self, table: pa.Table, side: str, seed: int, other_side: str | None) -> pa.Array:
        """Return the changes of each item of one side, [items * per_item], with their plates if they need some.

        Args:
            table: rows of tasks
            side: the side whose items are changed
            seed: decides which class is a rival
            other_side: the side whose backgrounds are not shown again; None if it is changed later
        """
        items = pc.list_flatten(table.column(side)).combine_chunks()
        positions = self._positions(items)
        if self.change.plates is None:
            return pa.repeat(self.change.spelling, len(items))
        row = _row_of_item(table, side)
        if self.change.plates == "random":
            candidates = self._of_any_class(positions)
        else:
            rows = iter([row]) if self.change.plates == "same" else self._rivals(table, row, seed)
            candidates = self._of_rows(table, rows, positions)
        is_on_side = self._is_on_side(table, row, candidates, other_side)
        drawback = 4 * (candidates < 0) + 2 * is_on_side + ~self._is_in_data(candidates)
        best = np.argsort(drawback, axis=1, kind="stable")[:, : self.copies]
        used, index = np.unique(np.take_along_axis(candidates, best, axis=1), return_inverse=True)
        return pa.array(self._spelled(used), pa.string()).take(pa.array(index.ravel()))

    def count_shown_twice(self, table: pa.Table, side: str, other_side: str) -> int:
        """Count the items of one side whose plate has a background that the other side of their task shows."""
        plates = self._plate_positions(table, side)[:, None]
        return int(self._is_on_side(table, _row_of_item(table, side), plates, other_side).sum())

    def contexts_of_variants(self, table: pa.Table) -> IntArray:
        """Return the contexts that a class's backgrounds may be from in such tasks, as codes; -1 stands for any."""
        is_planted = self.change.plates in ("same", "rival") and (self._planted(table) >= 0).any()
        return np.arange(len(self._context_codes.dictionary)) if is_planted else np.array([-1])

    def count_variants(self, contexts: IntArray) -> int:
        """Return how many variants `every_variant` returns at most."""
        other_classes = len(self.pool.classes) - 1 if self.change.plates == "rival" else 1
        return int(self.is_usable.sum()) * self.candidates * other_classes * len(contexts)

    def every_variant(self, contexts: IntArray) -> tuple[pa.Array, pa.Array]:
        """Return every item with every change that a task may ask for: names and spellings, end to end.

        Args:
            contexts: see `contexts_of_variants`
        """
        positions = np.flatnonzero(self.is_usable)
        if self.change.plates is None:
            items = self.pool.items.take(pa.array(positions))
            return items, pa.repeat(self.change.spelling, len(items))
        if self.change.plates == "random":
            candidates = self._of_any_class(positions)
        else:
            own_classes = self.pool.class_of[positions]
            classes = [own_classes] if self.change.plates == "same" else self._other_classes(own_classes)
            cells = [(of_class, np.full(len(positions), context)) for of_class in classes for context in contexts]
            candidates = np.concatenate([self.of_class(positions, *cell) for cell in cells])
            positions = np.tile(positions, len(cells))
        row, column = np.nonzero(candidates >= 0)  # tasks with classes that have too few cannot be changed
        used, index = np.unique(candidates[row, column], return_inverse=True)
        spellings = pa.array(self._spelled(used), pa.string()).take(pa.array(index))
        return self.pool.items.take(pa.array(positions[row])), spellings

    def of_class(self, positions: IntArray, classes: IntArray, contexts: IntArray) -> IntArray:
        """Choose the candidates of each item, [items, candidates], with -1 at the end if there are fewer.

        Args:
            positions: the items, [items]
            classes, contexts: class and context that the plates of each item are from, [items]; context -1 is any
        """
        assert self.change.plates is not None
        most = self.candidates
        chosen = np.full((len(positions), most), -1)
        for number, context in np.unique(np.stack([classes, contexts], axis=1), axis=0):
            rows = np.flatnonzero((classes == number) & (contexts == context))
            members = np.arange(self.pool.offsets[number], self.pool.offsets[number + 1])
            members = members[self.is_usable[members]]
            if context >= 0:
                members = members[self._context_of[members] == context]
            members = members[np.argsort(self.backgrounds[members], kind="stable")]
            backgrounds, first, sizes = np.unique(self.backgrounds[members], return_index=True, return_counts=True)
            if len(backgrounds) < self.fewest:
                continue
            is_own = backgrounds == self.backgrounds[positions[rows], None]
            keys = draws.bits(self.change.seed, positions[rows, None], backgrounds)
            order = np.argsort(np.where(is_own, np.iinfo(np.uint64).max, keys), axis=1, kind="stable")[:, :most]
            random = draws.bits(self.change.seed, _MEMBER, positions[rows, None], backgrounds[order])
            plates = members[first[order] + draws.below(random, sizes[order])]
            others = (~is_own).sum(axis=1, keepdims=True)
            is_plate = (np.arange(order.shape[1]) < others) & (others >= self.fewest)
            chosen[rows, : order.shape[1]] = np.where(is_plate, plates, -1)
        return chosen

    def _of_rows(self, table: pa.Table, rows: Iterator[IntArray], positions: IntArray) -> IntArray:
        """Choose the candidates of each item among the class of a row of its task, [items, candidates].

        Args:
            table: rows of tasks
            rows: yields a row for each item, [items]; the next is asked for items with too few candidates in the data
            positions: the items, [items]
        """
        labels = pc.index_in(table.column("label"), value_set=pa.array(self.pool.classes)).to_numpy()
        planted = self._planted(table)
        row = next(rows)
        candidates = self.of_class(positions, labels[row], planted[row])
        self._require_plates(candidates, labels[row], planted[row])
        for row in rows:
            lacking = np.flatnonzero(self._is_in_data(candidates).sum(axis=1) < self.copies)
            if not len(lacking):
                break
            of_class = self.of_class(positions[lacking], labels[row[lacking]], planted[row[lacking]])
            is_better = self._is_in_data(of_class).sum(axis=1) >= self.copies
            candidates[lacking[is_better]] = of_class[is_better]
        return candidates

    def _require_plates(self, candidates: IntArray, classes: IntArray, contexts: IntArray) -> None:
        """Raise InsufficientData if the class that an item needs plates of has too few others for it."""
        lacking = candidates[:, 0] < 0
        if lacking.any():
            number, context = (int(codes[np.argmax(lacking)]) for codes in (classes, contexts))
            members = slice(self.pool.offsets[number], self.pool.offsets[number + 1])
            is_usable = self.is_usable[members] & ((context < 0) | (self._context_of[members] == context))
            backgrounds = len(np.unique(self.backgrounds[members][is_usable]))
            place = f" in context '{self._context_codes.dictionary[context]}'" if context >= 0 else ""
            raise InsufficientData(
                f"change '{self.change.name}': class '{self.pool.classes[number]}' has "
                f"{counted(backgrounds, 'background')}{place} in {counted(int(is_usable.sum()), 'item')}: each item "
                f"needs {self.fewest} others"
            )

    def _of_any_class(self, positions: IntArray) -> IntArray:
        """Choose the candidates of each item among all plates, [items, candidates]."""
        members = np.flatnonzero(self.is_usable)
        members = members[np.argsort(self.backgrounds[members], kind="stable")]
        of_members = self.backgrounds[members]
        largest = int(np.unique(of_members, return_counts=True)[1].max(initial=0))
        fewest = len(members) - largest  # others of the item that has the fewest
        if fewest < self.fewest:
            raise InsufficientData(
                f"change '{self.change.name}': only {len(members)} items have a background, and {largest} of them the "
                f"same: each item needs {self.fewest} others"
            )
        first, last = (np.searchsorted(of_members, self.backgrounds[positions], side) for side in ("left", "right"))
        counters = (_ANY, positions[:, None], np.arange(min(self.candidates, fewest)))
        # Drawn among all items with other backgrounds: from its own background on, places move by as many as have it.
        same_background_count = last - first
        place = draws.distinct(draws.bits(self.change.seed, *counters), len(members) - same_background_count)
        return members[place + np.where(place >= first[:, None], same_background_count[:, None], 0)]

    def _rivals(self, table: pa.Table, row: IntArray, seed: int) -> Iterator[IntArray]:
        """Yield the row of another class of the task for each item, [items]: the chosen one, then the others."""
        task, slot = (table.column(name).to_numpy().astype(np.int64) for name in ("task", "slot"))
        first = np.maximum.accumulate(np.where(slot == 0, np.arange(len(table)), 0))
        ways = np.bincount(first, minlength=len(table))[first]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        step = 1 + draws.below(draws.bits(seed, _RIVAL, task[row], slot[row], place), ways[row] - 1)
        for turn in range(int(ways.max(initial=2)) - 1):
            yield first[row] + (slot[row] + 1 + (step - 1 + turn) % (ways[row] - 1)) % ways[row]

    def _planted(self, table: pa.Table) -> IntArray:
        """Return the context that all supports of a row have, if the task planted it, as a code; else -1: [rows]."""
        planted = pc.index_in(table.column("attribute"), value_set=self._context_codes.dictionary)
        planted = pc.fill_null(planted, -1).to_numpy().astype(np.int64)
        row = _row_of_item(table, "support")
        context = np.append(self._context_of, -1)[self._find(pc.list_flatten(table.column("support")))]
        differs = np.bincount(row, context != planted[row], minlength=len(table))
        return np.where(differs == 0, planted, -1)

    def _other_classes(self, own_classes: IntArray) -> list[IntArray]:
        """Return, for each step, another class for each item."""
        count = len(self.pool.classes)
        return [(own_classes + step) % count for step in range(1, count)]

    def _is_in_data(self, candidates: IntArray) -> BoolArray:
        """Return whether each candidate is in the data that tasks are drawn from; -1 is not."""
        is_in_data: BoolArray = (candidates >= 0) & self.is_drawn[candidates]
        return is_in_data

    def _is_on_side(self, table: pa.Table, row: IntArray, candidates: IntArray, side: str | None) -> BoolArray:
        """Return whether one side of the task shows the background of each candidate, [items, candidates].

        Args:
            table: rows of tasks
            row: row of each item that the candidates are for, [items]
            candidates: positions, [items, candidates]
            side: the side; None if there is none
        """
        if side is None:
            return np.zeros(candidates.shape, dtype=bool)
        task = table.column("task").to_numpy().astype(np.int64)
        positions = self._background_positions(table, side)
        keys = task[_row_of_item(table, side)] * len(self.backgrounds) + self.backgrounds[positions]
        of_side = keys[positions >= 0]
        is_on_side: BoolArray = np.isin(task[row, None] * len(self.backgrounds) + self.backgrounds[candidates], of_side)
        return is_on_side & (candidates >= 0)

    def _background_positions(self, table: pa.Table, side: str) -> IntArray:
        """Return where the backgrounds that one side shows are in the pool, [items]; -1 if an item shows none.

        These are those of its plates, or the items' own, unless these are taken apart.
        """
        positions = self._find(pc.list_flatten(table.column(side)).combine_chunks())
        changes_of_items = self._changes_of_items(table, side)
        if changes_of_items is None:
            return positions
        distinct, index = changes_of_items
        is_apart = np.array([isinstance(change, BackgroundChange) for change in distinct], dtype=bool)
        return np.where(is_apart[index], self._plate_positions(table, side), positions)

    def _plate_positions(self, table: pa.Table, side: str) -> IntArray:
        """Return where the plates of the items of one side are in the pool, [items]; -1 for items without one."""
        changes_of_items = self._changes_of_items(table, side)
        if changes_of_items is None:
            return np.full(len(_row_of_item(table, side)), -1)
        distinct, index = changes_of_items
        names = [change.plate if isinstance(change, BackgroundChange) else None for change in distinct]
        return self._find(pa.array(names, pa.string()))[index]

    def _changes_of_items(self, table: pa.Table, side: str) -> tuple[list[Change | None], IntArray] | None:
        """Return the distinct changes of one side, None for no change, and which each item has; None if none has."""
        name = change_column(side)
        if name not in table.column_names:
            return None
        spelled = pc.list_flatten(table.column(name)).combine_chunks().dictionary_encode()
        parsed = [
            None if spelling == UNCHANGED_ITEM else changes.make(spelling)
            for spelling in spelled.dictionary.to_pylist()
        ]
        return parsed, spelled.indices.to_numpy().astype(np.int64)

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
        is_usable = (positions >= 0) & self.is_usable[positions]
        if not is_usable.all():
            first, count = items[int(np.argmin(is_usable))].as_py(), len(pc.unique(items.filter(pa.array(~is_usable))))
            verb = "has" if count == 1 else "have"
            raise InputError(
                f"change '{self.change.name}': {counted(count, 'item')} of the tasks {verb} no mask and no recorded "
                f"background, e.g. '{first}': draw the tasks of images by a condition, "
                "shift(support_where=\"mask != ''\", query_where=\"mask != ''\", shifted=False), or from a catalog of "
                "items that have one"
            )
        return positions

    def _spelled(self, plates: IntArray) -> list[str]:
        """Spell the change with each of these plates."""
        names = self.pool.items.take(pa.array(plates)).to_pylist()
        return [replace(self.change, plate=name).spelling for name in names]


def _row_of_item(table: pa.Table, side: str) -> IntArray:
    """Return the row of each item of one side, [items]."""
    return np.repeat(np.arange(len(table)), pc.list_value_length(table.column(side)).to_numpy())


def _first_of_each(names: pa.Array) -> IntArray:
    """Return the first position with the same name as each position, [n]; its own if it has no name."""
    codes = pc.fill_null(names.dictionary_encode().indices, -1).to_numpy().astype(np.int64)
    positions = np.arange(len(codes))
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.where(codes < 0, positions, first[inverse.ravel()])
