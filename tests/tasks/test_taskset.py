from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shotproof.core.errors import InputError
from shotproof.core.records import TasksRecord
from shotproof.tasks.taskset import SCHEMA, TaskSet

COLUMNS: dict[str, list[Any]] = {
    "task": [3, 3, 8, 8, 8],
    "slot": [0, 1, 0, 1, 2],
    "label": ["owl", "wren", "owl", "wren", "rook"],
    "attribute": [None] * 5,
    "support": [["a"], ["b"], ["c"], ["d"], ["e", "f"]],
    "query": [["g"], [], ["h"], ["i"], ["j"]],
}


def task_set(**changes: list[Any]) -> TaskSet:
    return TaskSet(pa.table({**COLUMNS, **changes}), TasksRecord(name="birds", seed=4))


def test_tasks_may_differ_in_way_and_have_any_number() -> None:
    tasks = task_set()
    assert len(tasks) == 2
    assert tasks.starts.tolist() == [0, 2, 5]
    assert tasks.first(1).task_of_row.tolist() == [3, 3]
    assert tasks.first(9).digest == tasks.digest


def test_reading_gives_what_was_written(tmp_path: Path) -> None:
    task_set().write(tmp_path / "tasks.parquet")
    read = TaskSet.read(tmp_path / "tasks.parquet")
    assert read.table.equals(task_set().table)
    assert read.table.schema.field("slot").type == SCHEMA.field("slot").type
    assert (read.record.name, read.record.seed, read.record.stated_digest) == ("birds", 4, task_set().digest)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slot": [0, 1, 0, 2, 1]}, "slots 0, 1, 2, ... in each"),
        ({"slot": [0, 1, 0, 1, 70_000]}, "tasks, column 'slot': expected int16"),
        ({"task": [8, 8, 3, 3, 3]}, "expected rows ordered by task"),
        ({"support": [["a"], [], ["c"], ["d"], ["e"]]}, "column 'support': every class"),
        ({"query": [[], [], ["h"], ["i"], ["j"]]}, "at least one item"),
    ],
)
def test_what_is_no_task_set_is_refused(changes: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        task_set(**changes)
