"""The checker must find every kind of fault: each is planted in sound context tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.tasks.context.context_check import check_matched
from shotproof.tasks.context.context_sets import Context
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from tests.context_data import mixtures, sample_context

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound() -> tuple[Catalog, dict[str, TaskSet]]:
    catalog = mixtures(contexts=6)
    return catalog, sample_context(catalog, Context(clean_value="none"), way=3, shot=2, query=5, tasks=3)


def changed(tasks: TaskSet, change: Callable[[Rows], None]) -> TaskSet:
    rows = tasks.table.to_pylist()
    change(rows)
    return TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.record)


def swap_query(context: Callable[[Rows], str], count: int = 1, keep_source: bool = True) -> Callable[[Rows], None]:
    """The first query items in another context; with the source of a support item, if wanted."""

    def change(rows: Rows) -> None:
        for place in range(count):
            label, recording, _ = rows[0]["query"][place].split("/")
            recording = recording if keep_source else rows[0]["support"][0].split("/")[1]
            rows[0]["query"][place] = f"{label}/{recording}/{context(rows)}"

    return change


def unused(rows: Rows) -> str:
    return min({f"context{k}" for k in range(6)} - {row["attribute"] for row in rows[:3]})


def own(rows: Rows) -> str:
    return str(rows[0]["attribute"])


def neighbors(rows: Rows) -> str:
    return str(rows[1]["attribute"])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("iid", swap_query(unused), "which iid does not allow"),
        ("ood", swap_query(own), "which ood does not allow"),
        ("ood", swap_query(lambda rows: "none"), "which ood does not allow"),
        ("ood", swap_query(unused, count=5), "uneven"),
        ("hard-ood", swap_query(unused), "which hard-ood does not allow"),
        ("hard-ood", swap_query(neighbors, count=5), "uneven"),
        ("clean", swap_query(own), "which clean does not allow"),
        ("iid", swap_query(own, keep_source=False), "shares its source with"),
        ("iid", lambda rows: rows[0].update(attribute=rows[1]["attribute"]), "are not all different"),
        ("iid", lambda rows: rows[0].update(attribute="none"), "support has no context ('none')"),
        ("iid", lambda rows: rows[0].update(attribute=unused(rows)), "support item 'c.*has context"),
    ],
)
def test_a_fault_is_found(
    sound: tuple[Catalog, dict[str, TaskSet]], name: str, change: Callable[[Rows], None], message: str
) -> None:
    catalog, sets = sound
    assert check_tasks(sets[name], catalog) == []
    found = check_tasks(changed(sets[name], change), catalog)
    assert any(message.split("'")[0] in str(violation) for violation in found), found
    assert all(violation.task in (None, 0) for violation in found)


def test_sets_that_are_not_matched_are_found(sound: tuple[Catalog, dict[str, TaskSet]]) -> None:
    _, sets = sound
    assert list(check_matched(sets)) == []
    other = changed(sets["ood"], lambda rows: rows[4]["support"].reverse())
    assert list(check_matched({"iid": sets["iid"], "ood": other})) == [
        "ood and iid are not matched: task 1 differs in its classes or support items"
    ]
    assert "task 2 differs" in next(check_matched({"iid": sets["iid"], "ood": sets["ood"].first(2)}))
