"""A task set: few-shot tasks as saved data, which anybody can evaluate later."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shotproof.errors import InputError
from shotproof.tables import Meta, conform, digest, read_table, write_table

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


@dataclass(frozen=True)
class TaskSet:
    """A row a class of a task, ordered by task and slot; columns beyond the schema's tell how the row came about."""

    table: pa.Table
    meta: Meta = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = conform(self.table, REQUIRED, "tasks")
        for index, name in enumerate(["task", "slot"]):
            table = table.set_column(
                table.column_names.index(name), name, table.column(name).cast(SCHEMA.field(index).type)
            )
        object.__setattr__(self, "table", table)
        task, slot = self.task_of_row, self.slot_of_row
        follows = (task[1:] == task[:-1]) & (slot[1:] == slot[:-1] + 1) | (task[1:] > task[:-1]) & (slot[1:] == 0)
        if not (len(task) and slot[0] == 0 and follows.all()):
            raise InputError(
                "tasks: expected rows ordered by task, with slots 0, 1, 2, ... in each, and at least one task"
            )
        support, query = (pc.list_value_length(table.column(name)) for name in ("support", "query"))
        if support.null_count or pc.min(support).as_py() == 0:
            raise InputError("tasks, column 'support': every class of a task needs at least one item")
        if query.null_count or np.add.reduceat(query.to_numpy(), self.starts[:-1]).min() == 0:
            raise InputError("tasks, column 'query': every class needs a list, and every task at least one item")

    @classmethod
    def read(cls, path: str | Path) -> TaskSet:
        """Read tasks.parquet."""
        table, meta = read_table(Path(path), "tasks", REQUIRED)
        return cls(table, meta)

    def write(self, path: str | Path) -> None:
        """Write tasks.parquet."""
        write_table(Path(path), self.table, {**self.meta, "kind": "tasks", "digest": self.digest})

    @cached_property
    def digest(self) -> str:
        """Digest of the tasks themselves: equal digests, equal tasks."""
        return digest(self.table, list(REQUIRED))

    @property
    def match(self) -> str:
        """The same for task sets whose tasks are paired one by one; of a set that is like no other, its own digest."""
        return str(self.meta.get("match") or self.digest)

    @cached_property
    def task_of_row(self) -> npt.NDArray[np.int64]:
        """The task's number of each row."""
        return np.asarray(self.table.column("task").to_numpy(), dtype=np.int64)

    @cached_property
    def slot_of_row(self) -> npt.NDArray[np.int64]:
        """The slot of each row, 0 to way - 1."""
        return np.asarray(self.table.column("slot").to_numpy(), dtype=np.int64)

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first row of each task, and the number of rows at the end: task k has rows starts[k] to starts[k + 1]."""
        return np.append(np.flatnonzero(self.slot_of_row == 0), self.table.num_rows)

    def first(self, tasks: int) -> TaskSet:
        """The first tasks only."""
        return TaskSet(self.table.slice(0, int(self.starts[min(tasks, len(self))])), self.meta)

    def __len__(self) -> int:
        """The number of tasks."""
        return len(self.starts) - 1
