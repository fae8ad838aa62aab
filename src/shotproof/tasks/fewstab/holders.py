"""Items of a class that hold a word, as bit sets: intersections, unions and counts take 64 items at a time."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from shotproof.attributes.attributes import HeldWords
from shotproof.core.arrays import BoolArray, IntArray, UInt64Array
from shotproof.tasks.pool import ItemPool

_BUDGET = 64 * 1024 * 1024  # 64-bit words kept as bit sets: 512 MB
_LARGEST_TABLE = 2**24  # largest product of classes and words for a lookup table, which is faster than a search


class Holders:
    """Items of a class that hold a word, for each pair of a class and a word that occurs in it.

    Pairs are numbered by class, then by word. `items[starts[p]:starts[p + 1]]` are the holders of pair p, as positions
    within the class. Bit sets are built from these on first use, and dropped when they exceed the budget.
    """

    def __init__(self, pool: ItemPool, held_words: HeldWords, budget: int = _BUDGET) -> None:
        self.number_of_words = len(held_words.words)
        rows = held_words.matrix[pool.rows]
        by_class = [rows[start:stop].tocsc() for start, stop in itertools.pairwise(pool.offsets)]
        counts = np.concatenate([np.diff(columns.indptr) for columns in by_class])
        self.keys = np.flatnonzero(counts)  # class * words + word, ascending
        self.counts = counts[self.keys]
        self.starts = np.concatenate([[0], np.cumsum(self.counts)])
        self.items = np.concatenate([columns.indices for columns in by_class])
        self.pair_class, self.pair_word = np.divmod(self.keys, max(self.number_of_words, 1))
        self.first_pair = np.searchsorted(self.pair_class, np.arange(len(pool.classes) + 1))
        self.class_sizes = pool.sizes
        self.class_blocks = (pool.sizes + 63) // 64
        self.budget = budget
        self._pair_numbers: IntArray | None = None
        if len(counts) <= _LARGEST_TABLE:
            self._pair_numbers = np.full(len(counts), -1, dtype=np.int64)
            self._pair_numbers[self.keys] = np.arange(len(self.keys))
        self._drop_bit_sets()

    def pairs(self, classes: IntArray, words: IntArray) -> IntArray:
        """Return the number of each pair, -1 if the word does not occur in the class."""
        keys = classes * self.number_of_words + words
        if self._pair_numbers is not None:
            numbers: IntArray = self._pair_numbers[keys]
            return numbers
        indices = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[indices] == keys, indices, -1)

    def incidence(self, chosen: int) -> sparse.csr_matrix:
        """Build the matrix [words of the class, items of the class] with 1 where an item holds a word."""
        low, high = self.first_pair[chosen : chosen + 2]
        pointers = self.starts[low : high + 1]
        indices = self.items[pointers[0] : pointers[-1]]
        shape = (high - low, self.class_sizes[chosen])
        return sparse.csr_matrix((np.ones(len(indices), np.int32), indices, pointers - pointers[0]), shape)

    def bits(self, pairs: IntArray, blocks: IntArray, within: IntArray) -> UInt64Array:
        """Return the concatenated bit sets of pairs; pair -1 has no holders.

        `blocks` is the number of 64-bit blocks of each pair's class, `within` counts 0, 1, ... in each pair's blocks.
        """
        starts = self._start_of_pair[pairs]
        if starts.min() < 0:
            self._add_bit_sets(np.unique(pairs[starts < 0]))
            starts = self._start_of_pair[pairs]
        bits: UInt64Array = self._bits[np.repeat(starts, blocks) + within]
        return bits

    def _drop_bit_sets(self) -> None:
        zeros = int(self.class_blocks.max(initial=1))
        self._bits: UInt64Array = np.zeros(zeros, dtype=np.uint64)
        self._used = zeros
        self._start_of_pair = np.full(len(self.keys) + 1, -1, dtype=np.int64)
        self._start_of_pair[-1] = 0  # the last entry is for pair -1

    def _add_bit_sets(self, pairs: IntArray) -> None:
        blocks = self.class_blocks[self.pair_class[pairs]]
        starts = self._used + np.cumsum(blocks) - blocks
        end = self._used + int(blocks.sum())
        if end > len(self._bits):
            enlarged = np.zeros(max(end, 2 * len(self._bits)), dtype=np.uint64)
            enlarged[: self._used] = self._bits[: self._used]
            self._bits = enlarged
        counts = self.counts[pairs]
        entry = np.repeat(self.starts[:-1][pairs] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        item = self.items[entry].astype(np.int64)
        bit = np.left_shift(np.uint64(1), (item & 63).astype(np.uint64))
        block = np.repeat(starts, counts) + (item >> 6)
        first = np.flatnonzero(np.diff(block, prepend=-1))  # holders ascend, so equal blocks are neighbors
        self._bits[block[first]] = np.bitwise_or.reduceat(bit, first)
        self._start_of_pair[pairs] = starts
        self._used = end

    def drop_if_large(self) -> None:
        """Drop all bit sets if they exceed the budget."""
        if self._used > self.budget:
            self._drop_bit_sets()


def count_bits(bits: UInt64Array, starts: IntArray) -> IntArray:
    """Count the bits that are set from each start to the next."""
    counts: IntArray = np.add.reduceat(np.bitwise_count(bits).astype(np.int64), starts)
    return counts


def unpack(bits: UInt64Array, items: int) -> BoolArray:
    """Convert bit sets [m, blocks] to masks [m, items]."""
    flat = np.unpackbits(bits.astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little")
    masks: BoolArray = flat[:, :items].view(np.bool_)
    return masks
