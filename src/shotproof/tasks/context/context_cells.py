"""Items of a pool by class and context: a cell holds the items of one class in one context."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shotproof.core import draws
from shotproof.core.arrays import BoolArray, IntArray, UInt64Array
from shotproof.tasks.pool import ItemPool


class Cells:
    """Cells in the order of classes and contexts; a cell's place is its index among the cells of its class.

    positions: [items] positions of the items in the pool, cell by cell
    starts: [cells + 1] start of each cell in `positions`
    first: [classes + 1] first cell of each class
    counts: [classes, contexts] number of items
    widest: largest number of contexts of a class
    context_of: [classes, widest] contexts of a class, by place, -1 beyond its last
    sizes: [classes, widest] number of items, by place
    place_of: [classes, contexts] place of a context in a class, -1 if the class lacks it
    """

    def __init__(self, pool: ItemPool, contexts: Sequence[str | None]) -> None:
        self.classes = pool.classes
        self.contexts = sorted({context for context in contexts if context is not None})
        codes = {context: number for number, context in enumerate(self.contexts)}
        context = np.array([-1 if name is None else codes[name] for name in contexts], dtype=np.int64)
        key = pool.class_of * len(self.contexts) + context
        with_context = np.flatnonzero(context >= 0)
        self.positions = with_context[np.argsort(key[with_context], kind="stable")]
        cells, counts = np.unique(key[with_context], return_counts=True)
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
        """Index the items by source; without sources, each item counts as a source of its own."""
        codes = np.arange(len(pool.rows)) if pool.sources is None else pool.sources
        _, self.source = np.unique(codes[self.positions], return_inverse=True)
        by_source = np.argsort(self.source, kind="stable")
        self.source_starts = np.searchsorted(self.source[by_source], np.arange(self.source.max(initial=-1) + 2))
        self.class_by_source, self.place_by_source = item_class[by_source], item_place[by_source]

    def items_of_sources(self, sources: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the index of the source, the class and the cell's place of each item of these sources, all [m]."""
        begin = self.source_starts[sources]
        lengths = self.source_starts[sources + 1] - begin
        index = np.repeat(np.arange(len(sources)), lengths)
        entry = np.arange(len(index)) + np.repeat(begin - (np.cumsum(lengths) - lengths), lengths)
        return index, self.class_by_source[entry], self.place_by_source[entry]

    def describe(self, number: int, most: int = 4) -> str:
        """Describe a class by its contexts and their numbers of items, the largest first."""
        counts = self.counts[number]
        contexts = [k for k in np.argsort(-counts, kind="stable") if counts[k]]
        listed = ", ".join(f"{self.contexts[k]} {counts[k]}" for k in contexts[:most]) or "none"
        more = f", ... ({len(contexts)} in total)" if len(contexts) > most else ""
        return f"'{self.classes[number]}' ({listed}{more})"


def draw_true_index(possible: BoolArray, random: UInt64Array) -> IntArray:
    """Draw the index of a true value in each row [n, k], uniformly from random bits [n]; 0 if none is true."""
    counts = np.cumsum(possible, axis=1, dtype=np.int32)
    rank = draws.below(random, np.maximum(counts[:, -1], 1))
    chosen: IntArray = np.argmax(counts > rank[:, None], axis=1)
    return chosen


def allocate_evenly(capacity: IntArray, order: IntArray, total: int) -> IntArray:
    """Divide `total` between the places of each row, [..., k], as evenly as their capacities allow.

    Each round gives one to every place that has room, in the row's `order` of places, until all are given. Every row
    must have room for `total`.

    Example:
        >>> allocate_evenly(np.array([[5, 1, 5]]), np.array([[2, 1, 0]]), 6).tolist()
        [[2, 1, 3]]
    """
    room = np.take_along_axis(capacity, order, axis=-1)
    allocated = np.zeros_like(room)
    left = np.full((*room.shape[:-1], 1), total)
    while left.any():
        receives = room > allocated
        receives &= np.cumsum(receives, axis=-1) <= left
        allocated += receives
        left -= receives.sum(axis=-1, keepdims=True)
    allocation = np.empty_like(allocated)
    np.put_along_axis(allocation, order, allocated, axis=-1)
    return allocation
