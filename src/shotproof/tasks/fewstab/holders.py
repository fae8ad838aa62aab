"""Which items of a class hold a word, as sets of bits: intersections, unions and counts by whole machine words."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from shotproof.attributes.attributes import HeldWords
from shotproof.core.arrays import BoolArray, IntArray, UInt64Array
from shotproof.tasks.pool import ItemPool

_BUDGET = 64 * 1024 * 1024  # 64-bit words kept as bit sets: 512 MB
_MOST_LISTED = 2**24  # pairs of any class and any word that are looked up in a list, which is quicker than a search


class Holders:
    """For each pair of a class and a word that occurs in it, the items of the class that hold the word.

    Pairs are numbered by class, then by word. `items[starts[p]:starts[p + 1]]` are the holders of pair p, as positions
    within the class. Bit sets are made from these when first asked for, and forgotten when they outgrow the budget.
    """

    def __init__(self, pool: ItemPool, held: HeldWords, budget: int = _BUDGET) -> None:
        self.words_known = len(held.words)
        rows = held.matrix[pool.rows]
        by_class = [rows[start:stop].tocsc() for start, stop in itertools.pairwise(pool.offsets)]
        counts = np.concatenate([np.diff(columns.indptr) for columns in by_class])
        self.keys = np.flatnonzero(counts)  # class * words + word, ascending
        self.counts = counts[self.keys]
        self.starts = np.concatenate([[0], np.cumsum(self.counts)])
        self.items = np.concatenate([columns.indices for columns in by_class])
        self.pair_class, self.pair_word = np.divmod(self.keys, max(self.words_known, 1))
        self.first_pair = np.searchsorted(self.pair_class, np.arange(len(pool.classes) + 1))
        self.class_sizes = pool.sizes
        self.class_blocks = (pool.sizes + 63) // 64
        self.budget = budget
        self._numbers: IntArray | None = None
        if len(counts) <= _MOST_LISTED:
            self._numbers = np.full(len(counts), -1, dtype=np.int64)
            self._numbers[self.keys] = np.arange(len(self.keys))
        self._forget()

    def pairs(self, classes: IntArray, words: IntArray) -> IntArray:
        """The number of each pair, -1 where the word does not occur in the class."""
        wanted = classes * self.words_known + words
        if self._numbers is not None:
            numbers: IntArray = self._numbers[wanted]
            return numbers
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[found] == wanted, found, -1)

    def incidence(self, chosen: int) -> sparse.csr_matrix:
        """Word by item of one class, [words of the class, items of the class], entries 1."""
        low, high = self.first_pair[chosen : chosen + 2]
        pointers = self.starts[low : high + 1]
        indices = self.items[pointers[0] : pointers[-1]]
        shape = (high - low, self.class_sizes[chosen])
        return sparse.csr_matrix((np.ones(len(indices), np.int32), indices, pointers - pointers[0]), shape)

    def bits(self, pairs: IntArray, blocks: IntArray, within: IntArray) -> UInt64Array:
        """The bit sets of the pairs one after the other; pair -1 has no holders.

        `blocks` is the number of 64-bit blocks of each pair's class, `within` counts 0, 1, ... in each pair's blocks.
        """
        begin = self._at[pairs]
        if begin.min() < 0:
            self._make(np.unique(pairs[begin < 0]))
            begin = self._at[pairs]
        found: UInt64Array = self._bits[np.repeat(begin, blocks) + within]
        return found

    def _forget(self) -> None:
        zeros = int(self.class_blocks.max(initial=1))
        self._bits: UInt64Array = np.zeros(zeros, dtype=np.uint64)
        self._used = zeros
        self._at = np.full(len(self.keys) + 1, -1, dtype=np.int64)
        self._at[-1] = 0  # the last entry is that of pair -1

    def _make(self, pairs: IntArray) -> None:
        blocks = self.class_blocks[self.pair_class[pairs]]
        begin = self._used + np.cumsum(blocks) - blocks
        end = self._used + int(blocks.sum())
        if end > len(self._bits):
            grown = np.zeros(max(end, 2 * len(self._bits)), dtype=np.uint64)
            grown[: self._used] = self._bits[: self._used]
            self._bits = grown
        counts = self.counts[pairs]
        entry = np.repeat(self.starts[:-1][pairs] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        item = self.items[entry].astype(np.int64)
        one = np.left_shift(np.uint64(1), (item & 63).astype(np.uint64))
        block = np.repeat(begin, counts) + (item >> 6)
        new = np.flatnonzero(np.diff(block, prepend=-1))  # holders ascend, so equal blocks are neighbors
        self._bits[block[new]] = np.bitwise_or.reduceat(one, new)
        self._at[pairs] = begin
        self._used = end

    def forget_if_large(self) -> None:
        """Drop all bit sets once they take more than the budget; the next ones are made anew."""
        if self._used > self.budget:
            self._forget()


def count_bits(bits: UInt64Array, begin: IntArray) -> IntArray:
    """How many bits are set from each beginning to the next."""
    counted: IntArray = np.add.reduceat(np.bitwise_count(bits).astype(np.int64), begin)
    return counted


def unpack(bits: UInt64Array, items: int) -> BoolArray:
    """Bit sets [m, blocks] to membership [m, items]."""
    flat = np.unpackbits(bits.astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little")
    member: BoolArray = flat[:, :items].view(np.bool_)
    return member
