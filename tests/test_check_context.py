"""The checker must find every kind of fault: each is planted in sound context tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.tasks.check import check_tasks
from shotproof.tasks.check_context import check_matched
from shotproof.tasks.context_sets import sample_context
from shotproof.tasks.taskset import TaskSet
from tests.context_data import mixtures

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound() -> tuple[Catalog, dict[str, TaskSet]]:
    catalog = mixtures(contexts=6)
    return catalog, sample_context(catalog, clean_value="none", way=3, shot=2, query=5, tasks=3)


def changed(tasks: TaskSet, change: Callable[[Rows], None]) -> TaskSet:
    rows = tasks.table.to_pylist()
    change(rows)
    return TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.meta)


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


def neighbours(rows: Rows) -> str:
    return str(rows[1]["attribute"])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("iid", swap_query(unused), "which iid does not allow"),
        ("ood", swap_query(own), "which ood does not allow"),
        ("ood", swap_query(lambda rows: "none"), "which ood does not allow"),
        ("ood", swap_query(unused, count=5), "uneven"),
        ("hard_ood", swap_query(unused), "which hard_ood does not allow"),
        ("hard_ood", swap_query(neighbours, count=5), "uneven"),
        ("clean", swap_query(own), "which clean does not allow"),
        ("iid", swap_query(own, keep_source=False), "shares its source with a support item of the task"),
        ("iid", lambda rows: rows[0].update(attribute=rows[1]["attribute"]), "are not all different"),
        ("iid", lambda rows: rows[0].update(attribute="none"), "which means none"),
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


def test_on_the_command_line(tmp_path: Path) -> None:
    mixtures().write(tmp_path / "catalog.parquet")
    design = ["--way", "3", "--shot", "2", "--query", "5", "--tasks", "20"]
    sampled = ["sample", str(tmp_path / "catalog.parquet"), *design, "--clean-value", "none"]
    runner = CliRunner()
    assert runner.invoke(app, [*sampled, "--sampler", "context", "-o", str(tmp_path / "sets")]).exit_code == 0
    files = sorted(path.name for path in (tmp_path / "sets").iterdir())
    assert files == ["clean.parquet", "hard_ood.parquet", "iid.parquet", "ood.parquet"]
    alone = runner.invoke(app, [*sampled, "--sampler", "ood", "-o", str(tmp_path / "ood.parquet")])
    assert "confounded share" in alone.output
    assert (tmp_path / "ood.parquet").read_bytes() == (tmp_path / "sets" / "ood.parquet").read_bytes()
    check = ["check", "--catalog", str(tmp_path / "catalog.parquet")]
    checked = runner.invoke(app, [*check, *(str(tmp_path / "sets" / name) for name in files)])
    assert checked.exit_code == 0
    assert "matched: the same classes and support items" in checked.output
    runner.invoke(app, [*sampled, "--sampler", "iid", "--seed", "1", "-o", str(tmp_path / "iid.parquet")])
    both = [str(tmp_path / "iid.parquet"), str(tmp_path / "ood.parquet")]
    unmatched = runner.invoke(app, [*check, *both, "--json"])
    assert unmatched.exit_code == 1
    assert "are not matched: task 0" in unmatched.output
