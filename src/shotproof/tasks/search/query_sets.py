"""Query sets whose supports are still to be chosen, and the items that may be in these supports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.core.arrays import BoolArray, IntArray
from shotproof.core.errors import InsufficientData, Mismatch
from shotproof.tasks.pool import ItemPool


@dataclass(frozen=True)
class QuerySets:
    """Tasks without supports, one row per class of a task; `query` has the concatenated positions of all rows."""

    way: IntArray  # of each task
    start: IntArray  # the first row of each task
    classes: IntArray  # of each row
    shots: IntArray  # of each row
    count: IntArray  # query items of each row
    first: IntArray  # start of each row in `query`, and the end of the last
    query: IntArray

    @classmethod
    def of(cls, table: pa.Table, pool: ItemPool) -> QuerySets:
        """Find the classes and queries of task set rows in a pool. Raise Mismatch if it lacks an item or class."""
        label = table.column("label").combine_chunks()
        classes = pc.fill_null(pc.index_in(label, value_set=pa.array(pool.classes)), -1).to_numpy().astype(int)
        query = table.column("query")
        count = pc.list_value_length(query).to_numpy().astype(np.int64)
        first = np.concatenate([[0], np.cumsum(count)])
        items = pc.list_flatten(query)
        position = pc.fill_null(pc.index_in(items, value_set=pool.items), -1).to_numpy().astype(np.int64)
        foreign = np.append(pool.class_of, -1)[position] != np.repeat(classes, count)
        if (classes < 0).any() or foreign.any():
            row = int(np.argmax(classes < 0)) if (classes < 0).any() else -1
            subject = f"class '{label[row]}'" if row >= 0 else f"query item '{items[int(np.argmax(foreign))]}'"
            raise Mismatch(f"the tasks of `like` have the {subject}, which this catalog and split do not have")
        start = np.flatnonzero(table.column("slot").to_numpy() == 0)
        shots = pc.list_value_length(table.column("support")).to_numpy().astype(np.int64)
        way = np.diff(np.append(start, len(classes)))
        return cls(way, start, classes, shots, count, first, position)

    def rows(self, tasks: IntArray) -> IntArray:
        """Return the rows of tasks that have the same way, task by task."""
        return np.ravel(self.start[tasks][:, None] + np.arange(self.way[tasks[0]]))

    def shapes(self) -> IntArray:
        """Return the way and the number of query items of each task: [tasks, 2]."""
        return np.stack([self.way, np.add.reduceat(self.count, self.start)], axis=1)


def may_be_support(
    pool: ItemPool, classes: IntArray, task_of_slot: IntArray, query: IntArray, slot_of_query: IntArray
) -> BoolArray:
    """Return which positions of its class each slot's support may have: [slots, size of the largest class].

    These are all but the queries, and items that share a source with a query of the task.

    Args:
        pool: items of the tasks
        classes: class of each slot, task by task
        task_of_slot: task of each slot, ascending
        query: positions of the queries in the pool, slot by slot
        slot_of_query: slot of each query
    """
    sizes, offsets = pool.sizes[classes], pool.offsets[classes]
    in_class = np.arange(sizes.max()) < sizes[:, None]
    allowed = in_class.copy()
    allowed[slot_of_query, query - offsets[slot_of_query]] = False
    if pool.sources is None:
        return allowed
    starts = np.append(np.flatnonzero(np.diff(task_of_slot, prepend=-1)), len(classes))
    first = np.searchsorted(slot_of_query, starts)  # query of each task
    is_query_source = np.zeros(pool.sources.max() + 1, dtype=np.bool_)
    # Positions beyond a class have its first item, but are not allowed anyway.
    sources = pool.sources[offsets[:, None] + np.where(in_class, np.arange(sizes.max()), 0)]
    for task in range(len(starts) - 1):
        query_sources = pool.sources[query[first[task] : first[task + 1]]]
        is_query_source[query_sources] = True
        slots = slice(starts[task], starts[task + 1])
        allowed[slots] &= ~is_query_source[sources[slots]]
        is_query_source[query_sources] = False
    return allowed


def require_enough(
    pool: ItemPool, classes: IntArray, task_of_slot: IntArray, allowed: BoolArray, shots: IntArray
) -> None:
    """Raise InsufficientData if a slot may have fewer support items than it needs, with the task and the class."""
    too_few = np.flatnonzero(allowed.sum(axis=1) < shots)
    if len(too_few):
        slot = too_few[0]
        raise InsufficientData(
            f"task {task_of_slot[slot]}: class '{pool.classes[classes[slot]]}' has {allowed[slot].sum()} items that "
            f"are neither queries nor of a query's source, but the support needs {shots[slot]}"
        )
