"""`shotproof check` and `sp.check` on files: results, cards and folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shotproof as sp
from shotproof.cli.app import app
from shotproof.core.errors import InputError
from shotproof.core.trust import NotTrusted
from shotproof.pipeline.check import check
from tests.drawn_cards import make_card


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    catalog, features, _ = sp.GaussianWorld().draw(classes=6, items=40)
    catalog.write(folder / "catalog.parquet")
    features.write(folder / "features.parquet")
    tasks = sp.sample(catalog, "random", tasks=10)
    tasks.write(folder / "tasks.parquet")
    sp.evaluate(tasks, features, ["ncc", "knn"]).write(folder / "results.parquet")
    return folder


def lied(folder: Path, path: Path) -> Path:
    """The results with the counts of one task changed."""
    results = sp.Results.read(folder / "results.parquet")
    table = results.table.drop_columns(["missed", "answered"])
    correct = table.column("n_correct").to_pylist()
    correct[5 * 3] = 0 if correct[5 * 3] else 1
    lie = table.set_column(table.column_names.index("n_correct"), "n_correct", pa.array(correct))
    sp.Results(lie, results.record).write(path)
    return path


def test_a_folder_is_held_against_its_own_tasks(folder: Path) -> None:
    found = check(folder, features=folder / "features.parquet", sample=4)
    assert found.problems == ()
    assert found.told[0].endswith("ncc, knn, on their task sets; 4 tasks of each set computed anew")


def test_the_command_ends_with_status_1_and_the_first_task_that_differs(folder: Path, tmp_path: Path) -> None:
    file = lied(folder, tmp_path / "lie.parquet")
    given = ["check", str(file), "--tasks", str(folder / "tasks.parquet")]
    assert CliRunner().invoke(app, given).exit_code == 0
    found = CliRunner().invoke(app, [*given, "--features", str(folder / "features.parquet")])
    assert found.exit_code == 1
    assert f"{file}: method 'ncc': task 3, class " in found.output
    assert "1 of 10 tasks differ" in found.output
    printed = CliRunner().invoke(app, [*given, "--features", str(folder / "features.parquet"), "--json"])
    assert len(json.loads(printed.output)["problems"]) == 1


def test_results_on_other_features_are_not_computed_anew(folder: Path) -> None:
    catalog = sp.Catalog.read(folder / "catalog.parquet")
    others = sp.Features.from_array(catalog.items, np.ones((len(catalog), 2)))
    found = check(folder / "results.parquet", tasks=[folder / "tasks.parquet"], features=others, catalog=catalog)
    assert found.told[0].endswith("on their task sets; not computed anew")


def test_a_card_without_tasks_is_looked_at_by_itself(tmp_path: Path) -> None:
    make_card().write(tmp_path / "card.json")
    found = check(tmp_path / "card.json")
    assert "not held against task sets: none were given" in found.told[0]
    assert all("excess" in one for one in found.problems)


def test_methods_that_adapt_a_model_are_computed_anew(drawn_networks: Path) -> None:
    catalog, model = sp.Catalog.read(drawn_networks / "catalog.parquet"), drawn_networks / "first.model"
    tasks = sp.sample(catalog, "random", split="train", way=2, shot=1, query=2, tasks=3)
    results = sp.evaluate(tasks, methods="finetune(steps=1)", catalog=catalog, model=model, allow_seen=True)
    assert check(results, tasks=[tasks], catalog=catalog, model=model).problems == ()
    assert "; computed anew" in check(results, tasks=[tasks], catalog=catalog, model=model).told[0]


@pytest.mark.strangers
def test_code_that_results_name_is_not_imported_unless_it_is_trusted(folder: Path, tmp_path: Path) -> None:
    results = sp.Results.read(folder / "results.parquet")
    code = tmp_path / "alien.py"
    code.write_text("import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n")
    names = pa.array([f"{code}:head"] * results.table.num_rows)
    table = results.table.set_column(0, "method", names).slice(0, 50)
    lie = sp.Results(table, results.record)
    with pytest.raises(NotTrusted, match=r"runs the code of .*alien\.py"):
        check(lie, tasks=[folder / "tasks.parquet"], features=folder / "features.parquet")
    assert not (tmp_path / "imported").exists()


def test_what_cannot_be_checked_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="is of kind features: expected results, a card, or a run's folder"):
        check(folder / "features.parquet")
    with pytest.raises(InputError, match="expected features or a model, not both"):
        check(folder / "results.parquet", features=folder / "features.parquet", model="x.model")
    with pytest.raises(InputError, match="nothing to check"):
        check([])
    refused = CliRunner().invoke(app, ["check", str(folder / "tasks.parquet")])
    assert "expected the catalog that the tasks were drawn from" in str(refused.exception)
