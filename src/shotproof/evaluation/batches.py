"""A task set as arrays: tasks of one shape in batches, their items as rows of a feature array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.features.features import Features
from shotproof.learners.method import Method
from shotproof.tasks.taskset import TaskSet

LARGEST = 1e15  # in size, of a feature: its square is far from float32's largest number


@dataclass(frozen=True)
class Part:
    """The support or the query lists of a task set, end to end."""

    items: IntArray  # row in the feature array of each entry
    slot: IntArray  # class of each entry within its task
    count: IntArray  # entries of each row of the task set
    first: IntArray  # first entry of each task, and the number of entries at the end

    def positions(self, tasks: IntArray) -> IntArray:
        """The entries of tasks that have equally many: [tasks, entries]."""
        start = self.first[tasks]
        return start[:, None] + np.arange(self.first[tasks[0] + 1] - start[0])


@dataclass(frozen=True)
class Batch:
    """Tasks of one shape; `support` [B, n] and `query` [B, m] are positions in the two parts."""

    tasks: IntArray
    way: int
    support: IntArray
    query: IntArray

    def part(self, tasks: slice) -> Batch:
        """Some of the tasks."""
        return Batch(self.tasks[tasks], self.way, self.support[tasks], self.query[tasks])

    def one_by_one(self) -> Iterator[Batch]:
        """Each task alone."""
        return (self.part(slice(task, task + 1)) for task in range(len(self.tasks)))


@dataclass(frozen=True)
class TaskArrays:
    """Both parts of a task set, and the features [items, d] of the items that occur in it."""

    way: IntArray
    support: Part
    query: Part
    values: npt.NDArray[Any]
    maps: npt.NDArray[Any] | None = None  # [items, d, h, w], where a method needs them
    texts: npt.NDArray[Any] | None = None  # of each item's class, [items, d], where a method needs them

    @classmethod
    def of(
        cls, tasks: TaskSet, features: Features, methods: Iterable[Method] = (), among: IntArray | None = None
    ) -> TaskArrays:
        """Look every item up, and keep the rows that are used; of maps and texts, where a method needs them.

        If `among` names rows, it is these that are kept, so that task sets on the same items have the same arrays.
        """
        methods = list(methods)
        of_maps = [method.spelling for method in methods if method.needs == "maps"]
        of_texts = [method.spelling for method in methods if method.needs == "texts"]
        if of_maps and features.shape is None:
            raise InputError(
                f"method '{of_maps[0]}' needs local maps, but the features of '{features.name}' are one vector per "
                "item: encode them anew with the encoder's option maps=True"
            )
        if of_texts and features.texts is None:
            raise InputError(
                f"method '{of_texts[0]}' needs the texts of the classes, which the features of '{features.name}' lack: "
                "encode them by a model of two towers with templates, e.g. two-tower:NAME(templates='a photo of a {}.')"
                "; transforms leave texts out"
            )
        used, position = _used(features.rows_of(items_of(tasks)), len(features), among)
        support, query = parts_of(tasks, position)
        kept, values = features.maps[used] if of_maps else None, features.array[used]
        texts = features.texts[used] if of_texts and features.texts is not None else None
        for numbers in (values, *([] if texts is None else [texts])):
            _require_moderate(numbers, features, used)
        return cls(np.diff(tasks.starts), support, query, values, kept, texts)

    def shapes(self) -> IntArray:
        """The way and the numbers of support and query rows of each task: [tasks, 3]."""
        return np.stack([self.way, np.diff(self.support.first), np.diff(self.query.first)], axis=1)

    def by_shape(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Each shape, and the tasks that have it."""
        shapes, shape_of_task, count = np.unique(self.shapes(), axis=0, return_inverse=True, return_counts=True)
        members = np.split(np.argsort(shape_of_task, kind="stable"), np.cumsum(count)[:-1])
        yield from zip(shapes, members, strict=True)

    def batches_of(self, tasks: range, size: Callable[[IntArray, int], int]) -> list[Batch]:
        """Some of the tasks in batches of one shape; `size` says how many at a time, by their shape and number."""
        batches: list[Batch] = []
        for shape, of_shape in self.by_shape():
            members = of_shape[(of_shape >= tasks.start) & (of_shape < tasks.stop)]
            if len(members):
                batches += self.batches(members, size(shape, len(members)))
        return batches

    def batches(self, members: IntArray, size: int) -> Iterator[Batch]:
        """Tasks of one shape, at most `size` at a time."""
        for start in range(0, len(members), size):
            tasks = members[start : start + size]
            yield Batch(tasks, int(self.way[tasks[0]]), self.support.positions(tasks), self.query.positions(tasks))


def items_of(tasks: TaskSet) -> pa.ChunkedArray:
    """The support items of all tasks, then their query items, end to end."""
    flat = [pc.list_flatten(tasks.table.column(name)) for name in ("support", "query")]
    return pa.chunked_array([chunk for column in flat for chunk in column.chunks], pa.string())


def parts_of(tasks: TaskSet, rows: IntArray) -> tuple[Part, Part]:
    """The support and the query, from the row of each of `items_of`, in whatever the rows are of."""
    support, query = (tasks.table.column(name) for name in ("support", "query"))
    of_support, of_query = np.split(rows, [pc.sum(pc.list_value_length(support)).as_py()])
    return _part(tasks, support, of_support), _part(tasks, query, of_query)


def _used(rows: IntArray, count: int, among: IntArray | None) -> tuple[IntArray, IntArray]:
    """Which of `count` rows occur, ascending, and the position of each entry among these: np.unique without a sort."""
    occurs = np.zeros(count, dtype=bool)
    occurs[rows if among is None else among] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[rows]


def _require_moderate(values: npt.NDArray[Any], features: Features, rows: IntArray) -> None:
    """Refuse features of somebody's file that are no numbers, or too large to be squared; `values` are of `rows`."""
    if len(values) == 0 or (float(values.min()) >= -LARGEST and float(values.max()) <= LARGEST):  # a NaN is neither
        return
    broken = int(np.argmin(np.all(np.abs(values, dtype=np.float32) <= LARGEST, axis=1)))
    item = features.table.column("item")[int(rows[broken])].as_py()
    what = f"a value above {LARGEST:.0e} in size" if np.isfinite(values[broken]).all() else "a value that is not finite"
    raise InputError(f"features of '{features.name}': item '{item}' has {what}")


def _part(tasks: TaskSet, column: pa.ChunkedArray, items: IntArray) -> Part:
    count = pc.list_value_length(column).to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(count)])
    return Part(items, np.repeat(tasks.slot_of_row, count), count, ends[tasks.starts])
