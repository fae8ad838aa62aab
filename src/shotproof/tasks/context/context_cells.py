"""The items of a pool by class and context: a cell is a class in a context, with its items in a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray, UInt64Array
from shotproof.tasks.pool import ItemPool


class Cells:
    """Cells in the order of classes and contexts, with their items, also by their place among the class's own cells.

    positions: [items] the items' positions in the pool, cell by cell
    starts: [cells + 1] where the items of each cell begin
    first: [classes + 1] the first cell of each class
    counts: [classes, contexts] the number of items
    widest: the largest number of contexts that a class has
    context_of: [classes, widest] the contexts of a class, -1 where it has no more
    sizes: [classes, widest] the number of items in each of them
    place_of: [classes, contexts] where among its own cells a class has a context, -1 where it lacks it
    """

    def __init__(self, pool: ItemPool, contexts: Sequence[str | None]) -> None:
        self.classes = pool.classes
        self.contexts = sorted({context for context in contexts if context is not None})
        code = {context: number for number, context in enumerate(self.contexts)}
        context = np.array([-1 if name is None else code[name] for name in contexts], dtype=np.int64)
        key = pool.class_of * len(self.contexts) + context
        known = np.flatnonzero(context >= 0)
        self.positions = known[np.argsort(key[known], kind="stable")]
        cells, counts = np.unique(key[known], return_counts=True)
        cell_class, cell_context = np.divmod(cells, max(len(self.contexts), 1))
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.first = np.searchsorted(cell_class, np.arange(len(self.classes) + 1))
        place = np.arange(len(cells)) - self.first[cell_class]
        shape = (len(self.classes), len(self.contexts))
        self.counts = np.zeros(shape, dtype=np.int64)
        self.counts[cell_class, cell_context] = counts
        self.widest = int(place.max(initial=-1)) + 1
        self.context_of = np.full((len(self.classes), self.widest), -1)
        self.context_of[cell_class, place] = cell_context
        self.sizes = np.zeros((len(self.classes), self.widest), dtype=np.int64)
        self.sizes[cell_class, place] = counts
        self.place_of = np.full(shape, -1)
        self.place_of[cell_class, cell_context] = place
        self._index_sources(pool, np.repeat(cell_class, counts), np.repeat(place, counts))

    def _index_sources(self, pool: ItemPool, item_class: IntArray, item_place: IntArray) -> None:
        """Which items each source has; where the pool knows no sources, an item is its own."""
        codes = np.arange(len(pool.rows)) if pool.sources is None else pool.sources
        _, self.source = np.unique(codes[self.positions], return_inverse=True)
        by_source = np.argsort(self.source, kind="stable")
        self.source_starts = np.searchsorted(self.source[by_source], np.arange(self.source.max(initial=-1) + 2))
        self.class_by_source, self.place_by_source = item_class[by_source], item_place[by_source]

    def items_of_sources(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """All items of some sources: the index of the source [m], the item's class [m] and its cell's place [m]."""
        begin = self.source_starts[sources]
        lengths = self.source_starts[sources + 1] - begin
        index = np.repeat(np.arange(len(sources)), lengths)
        entry = np.arange(len(index)) + np.repeat(begin - (np.cumsum(lengths) - lengths), lengths)
        return index, self.class_by_source[entry], self.place_by_source[entry]

    def describe(self, number: int, most: int = 4) -> str:
        """A class with its contexts and their items, the largest first."""
        counts = self.counts[number]
        held = [k for k in np.argsort(-counts, kind="stable") if counts[k]]
        listed = ", ".join(f"{self.contexts[k]} {counts[k]}" for k in held[:most]) or "none"
        more = f", ... ({len(held)} in all)" if len(held) > most else ""
        return f"'{self.classes[number]}' ({listed}{more})"


def one_of(possible: BoolArray, random: UInt64Array) -> IntArray:
    """The index of one true value of each row of [n, k], uniformly by the random bits [n]; 0 where none is true."""
    counts = np.cumsum(possible, axis=1, dtype=np.int32)
    rank = draws.below(random, np.maximum(counts[:, -1], 1))
    chosen: IntArray = np.argmax(counts > rank[:, None], axis=1)
    return chosen


def allocate_evenly(capacity: IntArray, order: IntArray, total: int) -> IntArray:
    """Share out `total` between the places of each row, [..., k], none above its capacity, as evenly as these allow.

    A round gives one to every place that has room, in the row's `order` of places, until all are given; the rows must
    have room for them.

    Example:
        >>> allocate_evenly(np.array([[5, 1, 5]]), np.array([[2, 1, 0]]), 6).tolist()
        [[2, 1, 3]]
    """
    room = np.take_along_axis(capacity, order, axis=-1)
    given = np.zeros_like(room)
    left = np.full((*room.shape[:-1], 1), total)
    while left.any():
        more = room > given
        more &= np.cumsum(more, axis=-1) <= left
        given += more
        left -= more.sum(axis=-1, keepdims=True)
    places = np.empty_like(given)
    np.put_along_axis(places, order, given, axis=-1)
    return places
