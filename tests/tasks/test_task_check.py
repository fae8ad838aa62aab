"""The checker must find every kind of fault: each is planted in a sound task set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from tests.conftest import Data, draw_data

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound() -> tuple[TaskSet, Catalog, Attributes]:
    catalog, attributes = draw_data(seed=1, source_of=2)
    tasks = sample(catalog, "fewstab", attributes=attributes, split="test", way=4, shot=3, query=6, tasks=40)
    return tasks, catalog, attributes


def changed(tasks: TaskSet, change: Callable[[Rows], None]) -> TaskSet:
    rows = tasks.table.to_pylist()
    change(rows)
    return TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.record)


def words_of(attributes: Attributes, item: str) -> set[str]:
    return set(attributes.to_words()[item] or [])


def test_a_sound_set_passes(sound: tuple[TaskSet, Catalog, Attributes]) -> None:
    assert check_tasks(*sound) == []


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("label", lambda rows: rows[1]["label"], "the class occurs 2 times"),
        ("support", lambda rows: rows[1]["support"], "has the label"),
        ("support", lambda rows: rows[0]["support"][:2], "2 support items, but the design has 3"),
        ("support", lambda rows: [rows[0]["support"][0]] * 3, "occurs 3 times"),
        ("support", lambda rows: ["nowhere", *rows[0]["support"][1:]], "is not in the catalog"),
        ("query", lambda rows: rows[0]["query"][:5], "5 query items, but the design"),
        ("query", lambda rows: [*rows[0]["query"][:5], rows[0]["support"][0]], "holds the class's attribute"),
        ("attribute", lambda rows: rows[1]["attribute"], "are not all different"),
        ("attribute", lambda rows: "no such word", "is not eligible: held by 0"),
        ("fallback", lambda rows: not rows[0]["fallback"], "fallback is recorded as"),
    ],
)
def test_a_fault_is_found(
    sound: tuple[TaskSet, Catalog, Attributes], column: str, value: Callable[[Rows], Any], message: str
) -> None:
    tasks, catalog, attributes = sound

    def change(rows: Rows) -> None:
        rows[0][column] = value(rows)

    found = check_tasks(changed(tasks, change), catalog, attributes)
    assert any(message in str(violation) for violation in found), [str(v) for v in found]


def test_support_that_holds_another_classs_word(sound: tuple[TaskSet, Catalog, Attributes]) -> None:
    tasks, catalog, attributes = sound
    rows = tasks.table.to_pylist()
    others = {row["attribute"] for row in rows[1:4]}
    of_class = [item for item in catalog.items if item.startswith(rows[0]["label"])]
    tainted = next(
        i for i in of_class if rows[0]["attribute"] in words_of(attributes, i) and words_of(attributes, i) & others
    )
    found = check_tasks(changed(tasks, lambda r: r[0]["support"].__setitem__(0, tainted)), catalog, attributes)
    assert any("holds another class's attribute" in str(violation) for violation in found)


def test_a_query_that_is_not_among_the_lowest(sound: tuple[TaskSet, Catalog, Attributes]) -> None:
    tasks, catalog, attributes = sound
    rows = tasks.table.to_pylist()

    def is_candidate(row: dict[str, Any], task: Rows, item: str) -> bool:
        held = words_of(attributes, item)
        others = {other["attribute"] for other in task} - {row["attribute"]}
        return row["attribute"] not in held and (row["fallback"] or bool(held & others)) and item not in row["query"]

    places = []
    for index, row in enumerate(rows):
        task = [other for other in rows if other["task"] == row["task"]]
        of_class = [i for i in catalog.items if i.startswith(row["label"]) and is_candidate(row, task, i)]
        places += [(index, max(of_class, key=lambda i: len(words_of(attributes, i))))] if of_class else []
    hits = 0
    for index, item in places[:20]:
        found = check_tasks(
            changed(tasks, lambda r, i=index, x=item: r[i]["query"].__setitem__(0, x)), catalog, attributes
        )
        hits += any("less than query item" in str(violation) for violation in found)
    assert hits > 10  # the wordiest candidate left out is hardly ever among the lowest


def test_sources_on_both_sides(sound: tuple[TaskSet, Catalog, Attributes]) -> None:
    tasks, catalog, attributes = sound
    table = catalog.table.set_column(
        catalog.table.column_names.index("source"), "source", pa.array(["one"] * len(catalog))
    )
    found = check_tasks(tasks, Catalog(table), attributes)
    assert sum("shares its source" in str(violation) for violation in found) == 40 * 4 * 6


def test_another_split(sound: tuple[TaskSet, Catalog, Attributes]) -> None:
    tasks, catalog, attributes = sound
    table = catalog.table.set_column(
        catalog.table.column_names.index("split"), "split", pa.array(["train"] * len(catalog))
    )
    assert any("is in split 'train'" in str(v) for v in check_tasks(tasks, Catalog(table), attributes))


def test_files_that_were_changed_or_swapped(
    sound: tuple[TaskSet, Catalog, Attributes], data: Data, tmp_path: Any
) -> None:
    tasks, catalog, attributes = sound
    tasks.write(tmp_path / "tasks.parquet")
    read = TaskSet.read(tmp_path / "tasks.parquet")
    tampered = TaskSet(read.first(39).table, read.record)
    assert any("the file was changed" in str(v) for v in check_tasks(tampered, catalog, attributes))
    assert any("drawn from attributes with digest" in str(v) for v in check_tasks(read, catalog, data[1]))


def test_planted_tasks_need_attributes(sound: tuple[TaskSet, Catalog, Attributes]) -> None:
    with pytest.raises(InputError, match="needs the attributes"):
        check_tasks(sound[0], sound[1])


def test_a_class_without_queries_is_told_by_its_size(sound: tuple[TaskSet, Catalog, Attributes]) -> None:
    tasks, catalog, attributes = sound

    def empty(rows: Rows) -> None:
        rows[0]["query"] = []

    assert any(
        "0 query items" in str(check_task) for check_task in check_tasks(changed(tasks, empty), catalog, attributes)
    )


def test_columns_of_another_type_are_refused_and_empty_ones_are_not(
    sound: tuple[TaskSet, Catalog, Attributes],
) -> None:
    tasks, catalog, attributes = sound
    words = TaskSet(tasks.table.append_column("support_loosened", pa.array(["x"] * tasks.table.num_rows)), tasks.record)
    with pytest.raises(InputError, match="tasks, column 'support_loosened': expected int64"):
        check_tasks(words, catalog, attributes)
    empty = TaskSet(tasks.table.append_column("support_loosened", pa.nulls(tasks.table.num_rows)), tasks.record)
    assert check_tasks(empty, catalog, attributes) == []
