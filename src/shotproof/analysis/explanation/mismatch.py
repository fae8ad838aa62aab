"""How far the words of a class's support differ from those of its query, word by word and task by task.

The mismatch of a word in a class of a task is |percentage of the support that holds it - percentage of the query|, in
points; in a task, the mean over its classes. Pooled, it is that of all support and all query items of the task together
(Hard-Meta-Dataset++, Fig. 5). All matrices are sparse, of blocks of tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from shotproof.analysis.explanation.chance import ChanceTable, FloatArray, IntArray
from shotproof.attributes.attributes import Attributes, HeldWords
from shotproof.core.errors import InputError
from shotproof.tasks.taskset import TaskSet

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

    def holders(self, rows: slice, words: sparse.csr_matrix) -> sparse.csr_matrix:
        """How many items of each row hold each word: [rows, words]."""
        ends = self.ends[rows.start : rows.stop + 1]
        items = self.items[ends[0] : ends[-1]]
        shape = (len(ends) - 1, words.shape[0])
        return sparse.csr_matrix((np.ones(len(items)), items, ends - ends[0]), shape) @ words

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

    mismatch: sparse.csr_matrix
    chance: sparse.csr_matrix
    support: FloatArray
    query: FloatArray
    often: IntArray


def sides_of(sets: Sequence[TaskSet], attributes: Attributes) -> tuple[list[Sides], HeldWords]:
    """The items of all sets, numbered as the rows of the words that they hold."""
    columns = [one.table.column(name) for one in sets for name in ("support", "query")]
    flat = [pc.list_flatten(column) for column in columns]
    joined = pa.chunked_array([chunk for one in flat for chunk in one.chunks], pa.string()).combine_chunks()
    encoded = joined.dictionary_encode()
    held = attributes.of_items(encoded.dictionary)
    numbers = np.split(encoded.indices.to_numpy().astype(np.int64), np.cumsum([len(one) for one in flat])[:-1])
    ends = [np.concatenate([[0], np.cumsum(pc.list_value_length(column).to_numpy())]) for column in columns]
    given = [Side(*one).kept(held.known[one[0]]) for one in zip(numbers, ends, strict=True)]
    return [_sides(tasks, *given[2 * n : 2 * n + 2]) for n, tasks in enumerate(sets)], held


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
        average = sparse.csr_matrix((weight, (task, np.arange(len(task)))), (last - first, len(task)))
        yield _block(sides, rows, words, average, chance)


def _block(
    sides: Sides, rows: slice, words: sparse.csr_matrix, average: sparse.csr_matrix, chance: ChanceTable
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


def _times(matrix: sparse.csr_matrix, factor: FloatArray) -> sparse.csr_matrix:
    """Each row times its factor."""
    scaled = matrix.copy()
    scaled.data *= factor[_row_of_entry(matrix)]
    return scaled


def _row_of_entry(matrix: sparse.csr_matrix) -> IntArray:
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _with_mean(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """With a further column: the mean of the others."""
    mean = np.asarray(matrix.sum(axis=1)) / max(matrix.shape[1], 1)
    return sparse.hstack([matrix, sparse.csr_matrix(mean)], format="csr")


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
