"""The mismatch that chance alone gives: few shots and few queries never have quite the same shares."""

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
    """The mean of |percentage in support - percentage in query| over all ways to divide the same items: [items + 1].

    In points. Entry k is for a word that k of the support + query items hold; the support's holders are hypergeometric.

    Args:
        support, query: the number of items of each

    Example:
        >>> expected_mismatch(1, 1).tolist()
        [0.0, 100.0, 0.0]
    """
    total = support + query
    holders, drawn = np.arange(total + 1)[:, None], np.arange(support + 1)
    ways = _log_choices(holders, drawn) + _log_choices(total - holders, support - drawn)
    probability = np.exp(ways - _log_choices(total, support))
    distance = 100 * np.abs(drawn / support - (holders - drawn) / query)
    expected: FloatArray = (probability * distance).sum(axis=1)
    return expected


def _log_choices(total: Any, chosen: Any) -> Any:
    """The logarithm of the number of ways to choose some of a total; -inf if there are none."""
    from scipy.special import gammaln

    return gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1)


class ChanceTable:
    """`expected_mismatch` of every pair of sizes that occurs, looked up in whole arrays; none of a size of 0."""

    def __init__(self, support: IntArray, query: IntArray) -> None:
        sizes = np.unique(np.stack([support, query], axis=1)[(support > 0) & (query > 0)], axis=0)
        tables = [expected_mismatch(int(s), int(q)) for s, q in sizes]
        self._first = np.cumsum([0, *map(len, tables)])
        self._values = np.concatenate(tables)
        self._width = int(sizes[:, 1].max()) + 1
        self._keys = sizes[:, 0] * self._width + sizes[:, 1]  # ascending, as the sizes are

    def __call__(self, support: IntArray, query: IntArray, holders: IntArray) -> FloatArray:
        """The expectation for sizes and numbers of holders, all of one length."""
        size = np.searchsorted(self._keys, support * self._width + query)
        found: FloatArray = self._values[self._first[size] + holders]
        return found


Pooling = Literal["class", "pooled"]
MISMATCHES: tuple[str, ...] = get_args(Pooling)
BLOCK = 2048  # tasks at a time
OFTEN = 50.0  # a class with a mismatch of this much or more is counted as mismatched


@dataclass(frozen=True)
class Side:
    """The support or the query items of every class of a task set, as numbers, end to end.

    The items of row r are items[ends[r] : ends[r + 1]].
    """

    items: IntArray
    ends: IntArray

    @cached_property
    def sizes(self) -> IntArray:
        """The number of items of each row."""
        return np.diff(self.ends)

    def holders(self, rows: slice, words: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        """How many items of each row hold each word: [rows, words]."""
        ends = self.ends[rows.start : rows.stop + 1]
        items = self.items[ends[0] : ends[-1]]
        shape = (len(ends) - 1, words.shape[0])
        return scipy.sparse.csr_matrix((np.ones(len(items)), items, ends - ends[0]), shape) @ words

    def joined(self, starts: IntArray) -> Side:
        """With one row for several: those from each start to the next."""
        return Side(self.items, self.ends[starts])

    def kept(self, keep: npt.NDArray[np.bool_]) -> Side:
        """Only some of the items."""
        return Side(self.items[keep], np.concatenate([[0], np.cumsum(keep)])[self.ends])


@dataclass(frozen=True)
class Sides:
    """Both sides of every class of a task set, without items of which nothing is known.

    A class that would have no item left on one side takes no part: it is empty on both.

    starts: the first row of each task, and the number of rows at the end
    left_out: the number of classes of tasks that take no part
    """

    tasks: TaskSet
    support: Side
    query: Side
    starts: IntArray
    left_out: int

    def pooled(self) -> Sides:
        """With the classes of each task as one."""
        support, query = (side.joined(self.starts) for side in (self.support, self.query))
        return Sides(self.tasks, support, query, np.arange(len(self.tasks) + 1), self.left_out)


@dataclass(frozen=True)
class TaskBlock:
    """Consecutive tasks.

    mismatch: a task's mean over its classes, and in the last column the mean over all words: [tasks, words + 1]
    chance: what the same items would give on average if they were divided at random, likewise
    support, query: the sum over tasks of the mean percentage, [words]
    often: the number of classes of tasks with a mismatch of `OFTEN` or more, [words]
    """

    mismatch: scipy.sparse.csr_matrix
    chance: scipy.sparse.csr_matrix
    support: FloatArray
    query: FloatArray
    often: IntArray


def sides_of(sets: Sequence[TaskSet], attributes: Attributes) -> tuple[list[Sides], HeldWords]:
    """The items of all sets, numbered as the rows of the words that they hold."""
    items, numbered = numbered_sides(sets)
    held = attributes.of_items(items)
    known = [side.kept(held.known[side.items]) for side in numbered]
    return [_sides(tasks, *known[2 * n : 2 * n + 2]) for n, tasks in enumerate(sets)], held


def numbered_sides(sets: Sequence[TaskSet]) -> tuple[pa.Array, list[Side]]:
    """The distinct items of task sets, and the support and the query of each set as numbers of these."""
    columns = [whole_column(one.table.column(name)) for one in sets for name in ("support", "query")]
    flat = [column.flatten() for column in columns]
    encoded = pa.chunked_array(flat, pa.string()).dictionary_encode().unify_dictionaries()
    ends = [np.concatenate([[0], np.cumsum(pc.list_value_length(column))]) for column in columns]
    numbers = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return encoded.chunk(0).dictionary, [Side(*side) for side in zip(numbers, ends, strict=True)]


def _sides(tasks: TaskSet, support: Side, query: Side) -> Sides:
    usable = (support.sizes > 0) & (query.sizes > 0)
    in_task = np.add.reduceat(usable, tasks.starts[:-1], dtype=np.int64)
    if not in_task.all():
        number = int(tasks.task_of_row[tasks.starts[int(np.argmin(in_task))]])
        raise InputError(f"task {number}: the attributes know nothing of the support, or of the query, of its classes")
    support, query = (side.kept(np.repeat(usable, side.sizes)) for side in (support, query))
    return Sides(tasks, support, query, tasks.starts, int((~usable).sum()))


def blocks(sides: Sides, held: HeldWords) -> Iterator[TaskBlock]:
    """The mismatch of all tasks, `BLOCK` tasks at a time."""
    starts, sizes = sides.starts, (sides.support.sizes, sides.query.sizes)
    words = held.matrix.astype(np.float64)
    chance = ChanceTable(*sizes)
    for first in range(0, len(sides.tasks), BLOCK):
        last = min(first + BLOCK, len(sides.tasks))
        rows = slice(int(starts[first]), int(starts[last]))
        task = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        usable = sizes[0][rows] > 0
        weight = usable / np.bincount(task, usable)[task]
        average = scipy.sparse.csr_matrix((weight, (task, np.arange(len(task)))), (last - first, len(task)))
        yield _block(sides, rows, words, average, chance)


def _block(
    sides: Sides, rows: slice, words: scipy.sparse.csr_matrix, average: scipy.sparse.csr_matrix, chance: ChanceTable
) -> TaskBlock:
    held = [side.holders(rows, words) for side in (sides.support, sides.query)]
    sizes = [side.sizes[rows] for side in (sides.support, sides.query)]
    shares = [_times(one, 100 / np.maximum(size, 1)) for one, size in zip(held, sizes, strict=True)]
    mismatch, either = abs(shares[0] - shares[1]), held[0] + held[1]
    row = _row_of_entry(either)
    either.data = chance(sizes[0][row], sizes[1][row], either.data.astype(np.int64))
    weight = np.asarray(average.sum(axis=0)).ravel()
    return TaskBlock(
        _with_mean(average @ mismatch),
        _with_mean(average @ either),
        shares[0].T @ weight,
        shares[1].T @ weight,
        np.bincount(mismatch.indices[mismatch.data >= OFTEN - 1e-9], minlength=words.shape[1]),
    )


def _times(matrix: scipy.sparse.csr_matrix, factor: FloatArray) -> scipy.sparse.csr_matrix:
    """Each row times its factor."""
    scaled = matrix.copy()
    scaled.data *= factor[_row_of_entry(matrix)]
    return scaled


def _row_of_entry(matrix: scipy.sparse.csr_matrix) -> IntArray:
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _with_mean(matrix: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """With a further column: the mean of the others."""
    mean = np.asarray(matrix.sum(axis=1)) / max(matrix.shape[1], 1)
    return scipy.sparse.hstack([matrix, scipy.sparse.csr_matrix(mean)], format="csr")


def row_mismatch(sides: Sides, held: HeldWords, word: int) -> FloatArray:
    """The mismatch of one word in every class of every task, in points: [rows]."""
    column = held.matrix[:, [word]].astype(np.float64)
    rows = slice(0, len(sides.support.sizes))
    support, query = (
        100 * side.holders(rows, column).toarray()[:, 0] / np.maximum(side.sizes, 1)
        for side in (sides.support, sides.query)
    )
    distance: FloatArray = np.abs(support - query)
    return distance


class RunningMeans:
    """The mean and variance of each column over all rows added so far."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean: FloatArray = np.zeros(columns)
        self._squares: FloatArray = np.zeros(columns)  # summed squared deviations from the mean

    def add(self, rows: scipy.sparse.csr_matrix) -> None:
        """Add rows, [rows, columns]; combined with those before as Chan, Golub and LeVeque (1983) do."""
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
        """The mean over tasks of one column, with its spread."""
        return Estimate.of_moments(self.count, float(self.mean[column]), float(self._squares[column]) / self.count)


@dataclass(frozen=True)
class Shares:
    """One attribute in one task set; all are percentages or points, means over classes and tasks.

    support, query: how many of the items hold it
    mismatch: |percentage of a class's support - percentage of its query|; pooled, of all classes of a task as one
    chance: the mismatch of the same items if they were divided at random
    often: how many classes have a mismatch of 50 points or more
    """

    support: float
    query: float
    mismatch: Interval
    chance: float
    beyond_chance: Interval
    often: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "support": self.support,
            "query": self.query,
            **interval_json("mismatch", self.mismatch),
            "chance": self.chance,
            **interval_json("beyond_chance", self.beyond_chance),
            "often": self.often,
        }


class SetMismatch:
    """The sums over the blocks of one set that were added so far."""

    def __init__(self, words: int, classes: int, paired: bool) -> None:
        self.mismatch, self.beyond_chance, self.below_first = (RunningMeans(words + 1) for _ in range(3))
        self.support, self.query, self.often = (np.zeros(words) for _ in range(3))
        self.classes, self.paired = classes, paired

    def add(self, block: TaskBlock, first: TaskBlock | None) -> None:
        """Add a block of tasks; `first` are the tasks of the explained set that these are paired with."""
        self.mismatch.add(block.mismatch)
        self.beyond_chance.add(block.mismatch - block.chance)
        if first is not None:
            self.below_first.add(first.mismatch - block.mismatch)
        self.support += block.support
        self.query += block.query
        self.often += block.often

    @property
    def chance(self) -> FloatArray:
        """The mean mismatch by chance: [words + 1]."""
        return self.mismatch.mean - self.beyond_chance.mean

    def shares(self, column: int, level: float) -> Shares:
        """One attribute."""
        return Shares(
            float(self.support[column]) / self.mismatch.count,
            float(self.query[column]) / self.mismatch.count,
            self.mismatch.estimate(column).interval("sampler", level),
            float(self.chance[column]),
            self.beyond_chance.estimate(column).interval("sampler", level),
            100 * float(self.often[column]) / self.classes,
        )

    def difference(self, other: SetMismatch, column: int, level: float) -> Interval:
        """This set's mismatch minus another's: task by task where they are paired."""
        if other.paired:
            return other.below_first.estimate(column).interval("sampler", level)
        return self.mismatch.estimate(column).minus(other.mismatch.estimate(column)).interval("sampler", level)


def mismatch_of_sets(
    sides: Sequence[Sides], held: HeldWords, paired: Sequence[bool], runtime: Runtime
) -> list[SetMismatch]:
    """Go through all sets side by side, so that paired ones meet block by block."""
    for side, is_paired in zip(sides, paired, strict=True):
        if is_paired and len(side.tasks) != len(sides[0].tasks):
            raise Mismatch(f"sets of {len(sides[0].tasks)} and of {len(side.tasks)} tasks cannot be paired")
    classes = [int((side.support.sizes > 0).sum()) for side in sides]
    found = [SetMismatch(len(held.words), *given) for given in zip(classes, paired, strict=True)]
    with runtime.progress_bar("mismatch", sum(len(side.tasks) for side in sides)) as advance:
        for at_once in zip_longest(*(blocks(side, held) for side in sides)):
            for one, block in zip(found, at_once, strict=True):
                if block is not None:
                    one.add(block, at_once[0] if one.paired else None)
                    advance(block.mismatch.shape[0])
    return found


def interval_json(name: str, interval: Interval) -> dict[str, Any]:
    """A mean and its interval under the name; an interval that cannot be given is None."""
    return {name: interval.mean, f"{name}_interval": interval.bounds}
