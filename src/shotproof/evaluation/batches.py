"""Task set as arrays: tasks of one shape in batches, their items as rows of a feature array."""

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
from shotproof.tasks.taskset import SIDES, TaskSet

LARGEST = 1e15  # largest absolute value of a feature: its square is far below the largest float32


@dataclass(frozen=True)
class Part:
    """Support or query lists of a task set, concatenated."""

    items: IntArray  # row of each entry in the feature array
    slot: IntArray  # class of each entry within its task
    count: IntArray  # entries of each row of the task set
    first: IntArray  # first entry of each task, then the number of entries

    def positions(self, tasks: IntArray) -> IntArray:
        """Return the positions of the entries of tasks that all have the same number of entries: [tasks, entries]."""
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
        """Select some of the tasks."""
        return Batch(self.tasks[tasks], self.way, self.support[tasks], self.query[tasks])

    def single_tasks(self) -> Iterator[Batch]:
        """Split the batch into batches of one task."""
        return (self.part(slice(task, task + 1)) for task in range(len(self.tasks)))


@dataclass(frozen=True)
class TaskArrays:
    """Support and query parts of a task set, and the features [items, d] of the items that occur in it."""

    way: IntArray
    support: Part
    query: Part
    values: npt.NDArray[Any]
    maps: npt.NDArray[Any] | None = None  # [items, d, h, w], if a method needs them
    texts: npt.NDArray[Any] | None = None  # text of each item's class, [items, d], if a method needs them

    @classmethod
    def of(
        cls, tasks: TaskSet, features: Features, methods: Iterable[Method] = (), among: IntArray | None = None
    ) -> TaskArrays:
        """Look up every item, and select the rows of the features, maps and texts that the methods need.

        `among` names rows to keep instead of those that occur, so that task sets on the same items have the same
        arrays.
        """
        methods = list(methods)
        map_methods = [method.spelling for method in methods if method.needs == "maps"]
        text_methods = [method.spelling for method in methods if method.needs == "texts"]
        if map_methods and features.shape is None:
            raise InputError(
                f"method '{map_methods[0]}' needs local maps, but the features of '{features.name}' are one vector per "
                "item: encode the items again with the encoder's option maps=True"
            )
        if text_methods and features.texts is None:
            raise InputError(
                f"method '{text_methods[0]}' needs the texts of the classes, which the features of '{features.name}' "
                "lack: encode the items with a two-tower model and templates, e.g. "
                "two-tower:NAME(templates='a photo of a {}.'), and without transforms, which drop the texts"
            )
        rows, position = _used_rows(features.rows_of(items_of(tasks)), len(features), among)
        support, query = parts_of(tasks, position)
        maps, values = features.maps[rows] if map_methods else None, features.array[rows]
        texts = features.texts[rows] if text_methods and features.texts is not None else None
        for array in (values, *([] if texts is None else [texts])):
            _require_moderate(array, features, rows)
        return cls(np.diff(tasks.starts), support, query, values, maps, texts)

    def shapes(self) -> IntArray:
        """Return the way and the numbers of support and query rows of each task: [tasks, 3]."""
        return np.stack([self.way, np.diff(self.support.first), np.diff(self.query.first)], axis=1)

    def by_shape(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Group the tasks by shape."""
        shapes, shape_of_task, count = np.unique(self.shapes(), axis=0, return_inverse=True, return_counts=True)
        members = np.split(np.argsort(shape_of_task, kind="stable"), np.cumsum(count)[:-1])
        yield from zip(shapes, members, strict=True)

    def batches_of(self, tasks: range, size: Callable[[IntArray, int], int]) -> list[Batch]:
        """Split a range of tasks into batches of one shape; `size` maps a shape and its number of tasks to a size."""
        batches: list[Batch] = []
        for shape, same_shape in self.by_shape():
            members = same_shape[(same_shape >= tasks.start) & (same_shape < tasks.stop)]
            if len(members):
                batches += self.batches(members, size(shape, len(members)))
        return batches

    def batches(self, members: IntArray, size: int) -> Iterator[Batch]:
        """Split tasks of one shape into batches of at most `size` tasks."""
        for start in range(0, len(members), size):
            tasks = members[start : start + size]
            yield Batch(tasks, int(self.way[tasks[0]]), self.support.positions(tasks), self.query.positions(tasks))


def items_of(tasks: TaskSet) -> pa.ChunkedArray:
    """Concatenate the support items of all tasks, then their query items."""
    columns = [tasks.item_names(side) for side in SIDES]
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())


def parts_of(tasks: TaskSet, rows: IntArray) -> tuple[Part, Part]:
    """Build the support and the query part from the rows of `items_of(tasks)` in an array of features or items."""
    support, query = (tasks.table.column(name) for name in ("support", "query"))
    support_rows, query_rows = np.split(rows, [pc.sum(pc.list_value_length(support)).as_py()])
    return _part(tasks, support, support_rows), _part(tasks, query, query_rows)


def _used_rows(rows: IntArray, count: int, among: IntArray | None) -> tuple[IntArray, IntArray]:
    """Return which of `count` rows occur, and the position of each entry among them: np.unique without sorting."""
    occurs = np.zeros(count, dtype=bool)
    occurs[rows if among is None else among] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[rows]


def _require_moderate(values: npt.NDArray[Any], features: Features, rows: IntArray) -> None:
    """Reject features that are not finite, or too large to be squared; `values` are those of `rows`."""
    if len(values) == 0 or (float(values.min()) >= -LARGEST and float(values.max()) <= LARGEST):  # false for NaN
        return
    broken = int(np.argmin(np.all(np.abs(values, dtype=np.float32) <= LARGEST, axis=1)))
    item = features.table.column("item")[int(rows[broken])].as_py()
    is_finite = np.isfinite(values[broken]).all()
    problem = f"a value above {LARGEST:.0e} in size" if is_finite else "a value that is not finite"
    raise InputError(f"features of '{features.name}': item '{item}' has {problem}")


def _part(tasks: TaskSet, column: pa.ChunkedArray, items: IntArray) -> Part:
    count = pc.list_value_length(column).to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(count)])
    return Part(items, np.repeat(tasks.slot_of_row, count), count, ends[tasks.starts])
