"""Mismatch between support and query in the share of items that hold an attribute, observed and expected by chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from shotproof.attributes.attributes import Attributes, HeldWords
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.runtime.runtime import Runtime
from shotproof.core.tables import whole_column
from shotproof.stats.intervals import Estimate, Interval
from shotproof.tasks.taskset import TaskSet

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def expected_mismatch(support: int, query: int) -> FloatArray:
    """Compute the mean of |percentage in support - percentage in query| over all splits of the same items: [items + 1].

    In points. Entry k is for a word that k of the support + query items hold; the number of holders in the support is
    hypergeometric.

    Args:
        support, query: number of items of each

    Example:
        >>> expected_mismatch(1, 1).tolist()
        [0.0, 100.0, 0.0]
    """
    total = support + query
    holders, in_support = np.arange(total + 1)[:, None], np.arange(support + 1)
    log_ways = _log_choices(holders, in_support) + _log_choices(total - holders, support - in_support)
    probability = np.exp(log_ways - _log_choices(total, support))
    distance = 100 * np.abs(in_support / support - (holders - in_support) / query)
    expected: FloatArray = (probability * distance).sum(axis=1)
    return expected


def _log_choices(total: Any, size: Any) -> Any:
    """Compute the logarithm of the binomial coefficient; -inf if it is zero."""
    from scipy.special import gammaln

    return gammaln(total + 1) - gammaln(size + 1) - gammaln(total - size + 1)


class ChanceTable:
    """Table of `expected_mismatch` for every pair of positive sizes that occurs, for lookup with arrays."""

    def __init__(self, support: IntArray, query: IntArray) -> None:
        sizes = np.unique(np.stack([support, query], axis=1)[(support > 0) & (query > 0)], axis=0)
        tables = [expected_mismatch(int(s), int(q)) for s, q in sizes]
        self._offsets = np.cumsum([0, *map(len, tables)])
        self._values = np.concatenate(tables)
        self._width = int(sizes[:, 1].max()) + 1
        self._keys = sizes[:, 0] * self._width + sizes[:, 1]  # ascending, like the sizes

    def __call__(self, support: IntArray, query: IntArray, holders: IntArray) -> FloatArray:
        """Look up the expectation for arrays of sizes and numbers of holders, all of equal length."""
        pair = np.searchsorted(self._keys, support * self._width + query)
        expected: FloatArray = self._values[self._offsets[pair] + holders]
        return expected


Pooling = Literal["class", "pooled"]
MISMATCHES: tuple[str, ...] = get_args(Pooling)
BLOCK = 2048  # tasks per block
OFTEN = 50.0  # points from which a class counts as mismatched


@dataclass(frozen=True)
class Side:
    """Support or query items of every class of a task set, as one array of item numbers.

    The items of row r are items[ends[r] : ends[r + 1]].
    """

    items: IntArray
    ends: IntArray

    @cached_property
    def sizes(self) -> IntArray:
        """Return the number of items of each row."""
        return np.diff(self.ends)

    def holders(self, rows: slice, words: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        """Count the items of each row that hold each word: [rows, words]."""
        ends = self.ends[rows.start : rows.stop + 1]
        items = self.items[ends[0] : ends[-1]]
        shape = (len(ends) - 1, words.shape[0])
        return scipy.sparse.csr_matrix((np.ones(len(items)), items, ends - ends[0]), shape) @ words

    def joined(self, starts: IntArray) -> Side:
        """Merge rows: all rows from each start to the next become one."""
        return Side(self.items, self.ends[starts])

    def keep_items(self, keep: npt.NDArray[np.bool_]) -> Side:
        """Keep only some of the items."""
        return Side(self.items[keep], np.concatenate([[0], np.cumsum(keep)])[self.ends])


@dataclass(frozen=True)
class Sides:
    """Both sides of every class of a task set, without items that the attributes do not cover.

    A class without items left on one side is excluded: it is empty on both.

    starts: first row of each task, and the number of rows at the end
    left_out: number of excluded classes, over all tasks
    """

    tasks: TaskSet
    support: Side
    query: Side
    starts: IntArray
    left_out: int

    def pooled(self) -> Sides:
        """Pool the classes of each task into one row."""
        support, query = (side.joined(self.starts) for side in (self.support, self.query))
        return Sides(self.tasks, support, query, np.arange(len(self.tasks) + 1), self.left_out)


@dataclass(frozen=True)
class TaskBlock:
    """Consecutive tasks.

    mismatch: mean over the classes of each task; the last column is the mean over all words: [tasks, words + 1]
    chance: expected mismatch of the same items under a random split, same shape
    support, query: sum over tasks of the mean percentage, [words]
    often: number of classes, over all tasks, with a mismatch of `OFTEN` or more, [words]
    """

    mismatch: scipy.sparse.csr_matrix
    chance: scipy.sparse.csr_matrix
    support: FloatArray
    query: FloatArray
    often: IntArray


def sides_of(sets: Sequence[TaskSet], attributes: Attributes) -> tuple[list[Sides], HeldWords]:
    """Return the sides of all sets, with items numbered as the rows of the words they hold."""
    items, numbered = numbered_sides(sets)
    held_words = attributes.of_items(items)
    covered_sides = [side.keep_items(held_words.known[side.items]) for side in numbered]
    return [_build_sides(tasks, *covered_sides[2 * n : 2 * n + 2]) for n, tasks in enumerate(sets)], held_words


def numbered_sides(sets: Sequence[TaskSet]) -> tuple[pa.Array, list[Side]]:
    """Return the distinct items of task sets, and the support and query of each set as indices into them."""
    columns = [whole_column(task_set.table.column(name)) for task_set in sets for name in ("support", "query")]
    flat = [column.flatten() for column in columns]
    encoded = pa.chunked_array(flat, pa.string()).dictionary_encode().unify_dictionaries()
    ends = [np.concatenate([[0], np.cumsum(pc.list_value_length(column))]) for column in columns]
    numbers = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return encoded.chunk(0).dictionary, [Side(*side) for side in zip(numbers, ends, strict=True)]


def _build_sides(tasks: TaskSet, support: Side, query: Side) -> Sides:
    """Exclude classes that are empty on one side. Raise InputError if a task has no class left."""
    is_usable = (support.sizes > 0) & (query.sizes > 0)
    n_usable = np.add.reduceat(is_usable, tasks.starts[:-1], dtype=np.int64)
    if not n_usable.all():
        number = int(tasks.task_of_row[tasks.starts[int(np.argmin(n_usable))]])
        raise InputError(f"task {number}: no class has attributes for items of both its support and its query")
    support, query = (side.keep_items(np.repeat(is_usable, side.sizes)) for side in (support, query))
    return Sides(tasks, support, query, tasks.starts, int((~is_usable).sum()))


def blocks(sides: Sides, held_words: HeldWords) -> Iterator[TaskBlock]:
    """Yield the mismatch of all tasks, `BLOCK` tasks at a time."""
    starts, sizes = sides.starts, (sides.support.sizes, sides.query.sizes)
    words = held_words.matrix.astype(np.float64)
    chance = ChanceTable(*sizes)
    for start in range(0, len(sides.tasks), BLOCK):
        stop = min(start + BLOCK, len(sides.tasks))
        rows = slice(int(starts[start]), int(starts[stop]))
        task = np.repeat(np.arange(stop - start), np.diff(starts[start : stop + 1]))
        is_usable = sizes[0][rows] > 0
        weight = is_usable / np.bincount(task, is_usable)[task]
        average = scipy.sparse.csr_matrix((weight, (task, np.arange(len(task)))), (stop - start, len(task)))
        yield _block(sides, rows, words, average, chance)


def _block(
    sides: Sides, rows: slice, words: scipy.sparse.csr_matrix, average: scipy.sparse.csr_matrix, chance: ChanceTable
) -> TaskBlock:
    """Compute the mismatch of one block of tasks."""
    holders = [side.holders(rows, words) for side in (sides.support, sides.query)]
    sizes = [side.sizes[rows] for side in (sides.support, sides.query)]
    shares = [
        _scale_rows(side_holders, 100 / np.maximum(size, 1)) for side_holders, size in zip(holders, sizes, strict=True)
    ]
    mismatch, total_holders = abs(shares[0] - shares[1]), holders[0] + holders[1]
    row = _row_of_entry(total_holders)
    total_holders.data = chance(sizes[0][row], sizes[1][row], total_holders.data.astype(np.int64))
    weight = np.asarray(average.sum(axis=0)).ravel()
    return TaskBlock(
        _append_mean(average @ mismatch),
        _append_mean(average @ total_holders),
        shares[0].T @ weight,
        shares[1].T @ weight,
        np.bincount(mismatch.indices[mismatch.data >= OFTEN - 1e-9], minlength=words.shape[1]),
    )


def _scale_rows(matrix: scipy.sparse.csr_matrix, factor: FloatArray) -> scipy.sparse.csr_matrix:
    """Multiply each row by its factor."""
    scaled = matrix.copy()
    scaled.data *= factor[_row_of_entry(matrix)]
    return scaled


def _row_of_entry(matrix: scipy.sparse.csr_matrix) -> IntArray:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _append_mean(matrix: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """Append the mean over columns as a further column."""
    mean = np.asarray(matrix.sum(axis=1)) / max(matrix.shape[1], 1)
    return scipy.sparse.hstack([matrix, scipy.sparse.csr_matrix(mean)], format="csr")


def row_mismatch(sides: Sides, held_words: HeldWords, word: int) -> FloatArray:
    """Compute the mismatch of one word in every class of every task, in points: [rows]."""
    column = held_words.matrix[:, [word]].astype(np.float64)
    rows = slice(0, len(sides.support.sizes))
    support, query = (
        100 * side.holders(rows, column).toarray()[:, 0] / np.maximum(side.sizes, 1)
        for side in (sides.support, sides.query)
    )
    distance: FloatArray = np.abs(support - query)
    return distance


class RunningMeans:
    """Running mean and variance of each column over all rows added so far."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean: FloatArray = np.zeros(columns)
        self._squares: FloatArray = np.zeros(columns)  # sums of squared deviations from the mean

    def add(self, rows: scipy.sparse.csr_matrix) -> None:
        """Add rows, [rows, columns], with the update of Chan, Golub and LeVeque (1983)."""
        count, columns = rows.shape
        entries = np.bincount(rows.indices, minlength=columns)
        mean = np.bincount(rows.indices, rows.data, columns) / count
        deviation = rows.data - mean[rows.indices]
        squares = np.bincount(rows.indices, deviation**2, columns) + (count - entries) * mean**2
        total, shift = self.count + count, mean - self.mean
        self._squares += squares + shift**2 * self.count * count / total
        self.mean = self.mean + shift * count / total
        self.count = total

    def estimate(self, column: int) -> Estimate:
        """Return the mean of one column over tasks, with its variance."""
        return Estimate.of_moments(self.count, float(self.mean[column]), float(self._squares[column]) / self.count)


@dataclass(frozen=True)
class Shares:
    """Shares and mismatch of one attribute in one task set: percentages or points, averaged over classes and tasks.

    support, query: percentage of items that hold the attribute
    mismatch: |percentage of a class's support - percentage of its query|; if pooled, over all classes of a task
    chance: mismatch of the same items under a random split
    often: percentage of classes with a mismatch of 50 points or more
    """

    support: float
    query: float
    mismatch: Interval
    chance: float
    beyond_chance: Interval
    often: float

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values."""
        return {
            "support": self.support,
            "query": self.query,
            **interval_json("mismatch", self.mismatch),
            "chance": self.chance,
            **interval_json("beyond_chance", self.beyond_chance),
            "often": self.often,
        }


class SetMismatch:
    """Accumulator of the mismatch over the blocks of one set."""

    def __init__(self, words: int, classes: int, paired: bool) -> None:
        self.mismatch, self.beyond_chance, self.below_first = (RunningMeans(words + 1) for _ in range(3))
        self.support, self.query, self.often = (np.zeros(words) for _ in range(3))
        self.classes, self.paired = classes, paired

    def add(self, block: TaskBlock, first: TaskBlock | None) -> None:
        """Add a block of tasks; `first` holds the tasks of the explained set that these are paired with."""
        self.mismatch.add(block.mismatch)
        self.beyond_chance.add(block.mismatch - block.chance)
        if first is not None:
            self.below_first.add(first.mismatch - block.mismatch)
        self.support += block.support
        self.query += block.query
        self.often += block.often

    @property
    def chance(self) -> FloatArray:
        """Return the mean mismatch expected by chance: [words + 1]."""
        return self.mismatch.mean - self.beyond_chance.mean

    def shares(self, column: int, level: float) -> Shares:
        """Return the shares and mismatch of one attribute."""
        return Shares(
            float(self.support[column]) / self.mismatch.count,
            float(self.query[column]) / self.mismatch.count,
            self.mismatch.estimate(column).interval("sampler", level),
            float(self.chance[column]),
            self.beyond_chance.estimate(column).interval("sampler", level),
            100 * float(self.often[column]) / self.classes,
        )

    def difference(self, other: SetMismatch, column: int, level: float) -> Interval:
        """Subtract another set's mismatch from this one's, task by task if they are paired."""
        if other.paired:
            return other.below_first.estimate(column).interval("sampler", level)
        return self.mismatch.estimate(column).minus(other.mismatch.estimate(column)).interval("sampler", level)


def mismatch_of_sets(
    sides: Sequence[Sides], held_words: HeldWords, paired: Sequence[bool], runtime: Runtime
) -> list[SetMismatch]:
    """Compute the mismatch of all sets in parallel, so that paired sets meet block by block."""
    for side, is_paired in zip(sides, paired, strict=True):
        if is_paired and len(side.tasks) != len(sides[0].tasks):
            raise Mismatch(
                f"sets of {len(sides[0].tasks)} and {len(side.tasks)} tasks with the same queries cannot be paired"
            )
    classes = [int((side.support.sizes > 0).sum()) for side in sides]
    set_mismatches = [SetMismatch(len(held_words.words), *arguments) for arguments in zip(classes, paired, strict=True)]
    with runtime.progress_bar("mismatch", sum(len(side.tasks) for side in sides)) as advance:
        for set_blocks in zip_longest(*(blocks(side, held_words) for side in sides)):
            for set_mismatch, block in zip(set_mismatches, set_blocks, strict=True):
                if block is not None:
                    set_mismatch.add(block, set_blocks[0] if set_mismatch.paired else None)
                    advance(block.mismatch.shape[0])
    return set_mismatches


def interval_json(name: str, interval: Interval) -> dict[str, Any]:
    """Return a mean and its interval under a name; an unavailable interval is None."""
    return {name: interval.mean, f"{name}_interval": interval.bounds}
