"""Task sets: few-shot tasks as saved data, which anybody can evaluate later."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.catalog.changed_catalog import changed_names
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError
from shotproof.core.limits import QUERY, SHOT, WAY
from shotproof.core.nouns import counted
from shotproof.core.records import UNKNOWN, TasksRecord
from shotproof.core.tables import (
    Tabular,
    cast_columns,
    conform,
    digest,
    require_no_nulls,
)

REQUIRED = {
    "task": "integer",
    "slot": "integer",
    "label": "string",
    "attribute": "string",
    "support": "strings",
    "query": "strings",
}
SCHEMA = pa.schema(
    [
        ("task", pa.int32()),
        ("slot", pa.int16()),
        ("label", pa.string()),
        ("attribute", pa.string()),
        ("support", pa.list_(pa.string())),
        ("query", pa.list_(pa.string())),
    ]
)

SIDES = ("support", "query")
UNCHANGED_ITEM = ""  # in the columns of changes: an item that stays as it is


def change_column(side: str) -> str:
    """Return the name of the column with what was changed in the items of a side."""
    return f"{side}_change"


@dataclass(frozen=True, repr=False)
class TaskSet(Tabular):
    """Few-shot tasks, one row per class of a task, ordered by task and slot; extra columns record how a row was drawn.

    Example:
        >>> import pyarrow as pa
        >>> columns = {"task": [0, 0], "slot": [0, 1], "label": ["wren", "owl"], "attribute": [None, None]}
        >>> TaskSet(pa.table({**columns, "support": [["a"], ["b"]], "query": [["c"], ["d"]]})).starts.tolist()
        [0, 2]
    """

    KIND, REQUIRED, RECORD = "tasks", REQUIRED, TasksRecord

    table: pa.Table
    record: TasksRecord = field(default_factory=TasksRecord)

    def __post_init__(self) -> None:
        table = cast_columns(conform(self.table, REQUIRED, "tasks"), SCHEMA, "tasks")
        object.__setattr__(self, "table", table)
        task, slot = self.task_of_row, self.slot_of_row
        is_in_order = (task[1:] == task[:-1]) & (slot[1:] == slot[:-1] + 1) | (task[1:] > task[:-1]) & (slot[1:] == 0)
        if not (len(task) and slot[0] == 0 and is_in_order.all()):
            raise InputError(
                "tasks: expected rows ordered by task, with slots 0, 1, 2, ... in each, and at least one task"
            )
        for side in ("support", "query"):
            require_no_nulls(table.column(side), f"tasks, column '{side}'")
            self._check_changes(side)
        support, query = (pc.list_value_length(table.column(name)) for name in ("support", "query"))
        if support.null_count or pc.min(support).as_py() == 0:
            raise InputError("tasks, column 'support': every class of a task needs at least one item")
        if query.null_count or np.add.reduceat(query.to_numpy(), self.starts[:-1]).min() == 0:
            raise InputError("tasks, column 'query': every class needs a list, and every task at least one item")

    def describe(self) -> str:
        """Describe the sampler, the number and size of the tasks, and the digest."""
        record = self.record
        sizes = f"{record.way or 'variable'}-way {record.shot or 'variable'}-shot"
        return f"{counted(len(self), f'{record.sampler or UNKNOWN} task')}, {sizes}, digest {self.digest}"

    def _check_changes(self, side: str) -> None:
        """Check that every item of a side has its change, if any item has one."""
        name = change_column(side)
        if name not in self.table.column_names:
            return
        table = conform(self.table, {name: "strings"}, "tasks")
        require_no_nulls(table.column(name), f"tasks, column '{name}'")
        lengths = [pc.list_value_length(table.column(column)) for column in (side, name)]
        if not pc.all(pc.equal(*lengths)).as_py():
            raise InputError(f"tasks, column '{name}': expected as many changes as '{side}' has items")
        object.__setattr__(self, "table", table)

    @cached_property
    def digest(self) -> str:
        """Return the digest of the content, with the changes of items if there are any."""
        changes = [name for side in SIDES if (name := change_column(side)) in self.table.column_names]
        return digest(self.table, [*REQUIRED, *changes])

    @property
    def is_changed(self) -> bool:
        """Return whether items of the tasks are changed before they are shown to a classifier."""
        return any(change_column(side) in self.table.column_names for side in SIDES)

    def changes(self, side: str) -> pa.ChunkedArray | None:
        """Return the change of each item of one side, end to end; None if its items stay as they are."""
        name = change_column(side)
        return pc.list_flatten(self.table.column(name)) if name in self.table.column_names else None

    def item_names(self, side: str) -> pa.ChunkedArray:
        """Return the name of each item of one side, end to end, as features have it: with its change, if it has one."""
        items, changes = pc.list_flatten(self.table.column(side)), self.changes(side)
        if changes is None:
            return items
        return pc.if_else(pc.equal(changes, UNCHANGED_ITEM), items, changed_names(items, changes))

    @property
    def match(self) -> str:
        """Return the digest shared by task sets whose tasks are paired, or the set's own digest if it has no pair."""
        return self.record.match or self.digest

    @cached_property
    def task_of_row(self) -> IntArray:
        """Return the task number of each row."""
        return np.asarray(self.table.column("task").to_numpy(), dtype=np.int64)

    @cached_property
    def slot_of_row(self) -> IntArray:
        """Return the slot of each row, 0 to way - 1."""
        return np.asarray(self.table.column("slot").to_numpy(), dtype=np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """Return the first row of each task, then the number of rows: task k has rows starts[k] to starts[k + 1]."""
        return np.append(np.flatnonzero(self.slot_of_row == 0), self.table.num_rows)

    def common_sizes(self) -> tuple[int | None, int | None, int | None]:
        """Return the way, shot and query that all tasks share; None for each that differs between tasks."""
        shots, queries = (pc.list_value_length(self.table.column(side)) for side in ("support", "query"))
        way, shot, query = (
            int(sizes[0]) if len(sizes) == 1 else None
            for sizes in map(np.unique, (np.diff(self.starts), shots, queries))
        )
        return way, shot, query

    def first(self, tasks: int) -> TaskSet:
        """Return a task set of the first tasks only."""
        return TaskSet(self.table.slice(0, int(self.starts[min(tasks, len(self))])), self.record)

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class TaskShape:
    """Classes per task, support items per class, query items per class.

    Example:
        >>> TaskShape(way=5, shot=1).items_per_class
        16
    """

    way: int = 5
    shot: int = 5
    query: int = 15

    def __post_init__(self) -> None:
        for name, limits in (("way", WAY), ("shot", SHOT), ("query", QUERY)):
            limits.check(name, getattr(self, name))

    @property
    def items_per_class(self) -> int:
        """Return the number of support and query items together."""
        return self.shot + self.query
