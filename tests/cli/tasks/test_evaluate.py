from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.core.errors import ShotproofError
from shotproof.core.runtime.runtime import runtime as current_with
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.method import DEFAULT_METHODS
from shotproof.pipeline.steps.steps import file_name
from shotproof.results.results import Results
from shotproof.stats.intervals import sampler_interval
from shotproof.tasks.sampler import sample
from shotproof.training.train import train
from shotproof.worlds.shapes import ShapesWorld
from tests.chat_servers import chat_server
from tests.drawn_tasks import draw_task_set
from tests.small_networks import SMALL, write_world


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    tasks, features = draw_task_set()
    tasks.write(tmp_path / "tasks.parquet")
    features.write(tmp_path / "features.parquet")
    named = [str(tmp_path / "tasks.parquet"), str(tmp_path / "features.parquet")]
    return ["evaluate", *named, "-o", str(tmp_path / "r")]


def test_the_table_names_methods_and_interval(files: list[str], tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, [*files, "--method", "ncc", "--method", "ridge(penalty=1)"])
    assert outcome.exit_code == 0, outcome.output
    interval = sampler_interval(Results.read(tmp_path / "r").counts("ncc").worst_by_task())
    assert f"{interval.mean:.2f} ± {interval.half_width:.2f}" in outcome.stdout
    assert "ridge(penalty=1)" in outcome.stdout
    assert "sampler" in outcome.stdout


def test_json_holds_the_same_numbers(files: list[str], tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, [*files, "--json"])
    printed = json.loads(outcome.stdout)
    assert [row["method"] for row in printed["methods"]] == list(DEFAULT_METHODS)
    assert (printed["tasks"], printed["interval"]) == (20, "sampler")
    interval = sampler_interval(Results.read(tmp_path / "r").counts("ncc").accuracy_by_task())
    assert printed["methods"][0]["acc"] == {"mean": interval.mean, "low": interval.low, "high": interval.high}


def test_one_task_has_no_interval(files: list[str], tmp_path: Path) -> None:
    tasks, _ = draw_task_set()
    tasks.first(1).write(tmp_path / "tasks.parquet")
    assert "±" not in CliRunner().invoke(app, files).stdout
    assert json.loads(CliRunner().invoke(app, [*files, "--json"]).stdout)["methods"][0]["acc"]["low"] is None


def test_the_results_are_those_of_the_function(files: list[str], tmp_path: Path) -> None:
    CliRunner().invoke(app, [*files, "--seed", "3", "--device", "cpu"])
    expected = evaluate(*draw_task_set(), DEFAULT_METHODS, seed=3)
    assert Results.read(tmp_path / "r").digest == expected.digest
    assert Results.read(tmp_path / "r").record.methods == expected.record.methods


def test_warnings_are_one_line_each_on_standard_error(files: list[str]) -> None:
    outcome = CliRunner().invoke(
        app, [*files, "--method", "sklearn:sklearn.linear_model.LogisticRegression(max_iter=1)"]
    )
    assert outcome.stderr.startswith(
        "warning: method 'sklearn:sklearn.linear_model.LogisticRegression(max_iter=1)' warned 20"
    )
    assert outcome.stderr.count("\n") == 1


def test_bad_input_writes_nothing(files: list[str], tmp_path: Path) -> None:
    for extra in (["--method", "nccc"], ["--device", "nowhere"], [str(tmp_path / "missing.parquet")]):
        outcome = CliRunner().invoke(app, [*files, *extra])
        assert isinstance(outcome.exception, ShotproofError)
    assert not (tmp_path / "r").exists()


OTHER = f"{file_name('hf:other/net')}.parquet"


def test_several_features_go_into_a_folder_and_all_stands_for_every_head(files: list[str], tmp_path: Path) -> None:
    _, features = draw_task_set()
    scaled_up = Features.from_array(features.table.column("item"), 2 * features.array, name="hf:other/net")
    scaled_up.write(tmp_path / "other")
    more = [str(tmp_path / "other")]
    outcome = CliRunner().invoke(app, [*files, *more, "-m", "ncc", "-m", "cosine"])
    assert outcome.exit_code == 0, outcome.output
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["drawn.parquet", OTHER]
    scaled = Results.read(tmp_path / "r" / OTHER)
    assert scaled.methods == ["ncc", "cosine"]
    assert scaled.digest == evaluate(*draw_task_set(), ["ncc", "cosine"]).digest
    with pytest.raises(ShotproofError, match=r"expected a folder .*results of 2 features"):
        CliRunner().invoke(app, [*files[:-1], "r.parquet", *more], catch_exceptions=False)
    with pytest.raises(ShotproofError, match="same name"):
        CliRunner().invoke(app, [*files, files[2]], catch_exceptions=False)


def test_a_method_on_items_takes_the_catalog(tmp_path: Path) -> None:
    catalog = ShapesWorld(classes=3, items=4, size=16).write(tmp_path)
    catalog.write(tmp_path / "catalog.parquet")
    sample(catalog, "random", way=2, shot=1, query=1, tasks=3).write(tmp_path / "tasks.parquet")
    given = ["evaluate", str(tmp_path / "tasks.parquet"), "-o", str(tmp_path / "r")]
    with chat_server() as server:
        method = f"chat(model='tiny', url='{server.url}')"
        on_items = [*given, str(tmp_path / "catalog.parquet"), "--cache", "none", "-m", method]
        outcome = CliRunner().invoke(app, on_items)
    assert outcome.exit_code == 0, outcome.output
    assert "method 'chat(model='tiny')': 6 requests with 18 images or sounds, about " in outcome.stderr
    assert "r: items, 3 tasks in " in outcome.stdout
    assert Results.read(tmp_path / "r").methods == ["chat(model='tiny')"]


def test_a_method_that_adapts_a_network_takes_the_model_and_a_rate_from_validation_tasks(tmp_path: Path) -> None:
    catalog = write_world(tmp_path, classes=9, items=6, val=6)
    catalog.write(tmp_path / "catalog.parquet")
    with current_with(cache=None, workers=1, progress=False, device="cpu"):
        train(catalog, "anil", output=tmp_path / "anil.model", **{**SMALL, "epochs": 1})
    names = sorted(set(catalog.in_split("val").table.column("label").to_pylist()))
    for file, some in (("tasks", names[:3]), ("val", names[3:])):
        part = Catalog(
            catalog.table.filter(pc.is_in(catalog.table.column("label"), pa.array(some))), catalog.root, catalog.record
        )
        sample(part, "random", way=3, shot=2, query=3, tasks=4).write(tmp_path / f"{file}.parquet")
    given = [
        "evaluate",
        str(tmp_path / "tasks.parquet"),
        "-o",
        str(tmp_path / "r"),
        "--model",
        str(tmp_path / "anil.model"),
    ]
    on_items = [*given, str(tmp_path / "catalog.parquet"), "--cache", "none", "--device", "cpu"]
    tuned = ["-m", "anil", "--tune-on", str(tmp_path / "val.parquet"), "--rate", "0.1"]
    outcome = CliRunner().invoke(app, [*on_items, *tuned])
    assert outcome.exit_code == 0, outcome.output
    assert Results.read(tmp_path / "r").methods == ["anil(rate=0.1)"]
    assert "r: anil on conv64f" in outcome.stdout
    draw_task_set()[1].write(tmp_path / "f.parquet")
    refused = CliRunner().invoke(app, [*given, str(tmp_path / "f.parquet"), "-m", "anil"])
    assert "--model needs the catalog" in str(refused.exception)


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (["tasks.parquet"], "expected either features, or"),
        (["tasks.parquet", "c.parquet", "features.parquet"], "expected either features, or"),
        (["tasks.parquet", "c.parquet", "--transform", "l2"], "--transform needs features"),
        (["features.parquet"], "expected tasks.parquet"),
        (["tasks.parquet", "tasks.parquet", "features.parquet"], "both hold a task set"),
        (["tasks.parquet", "r.parquet"], "r.parquet: expected a task set, features or a catalog, found results"),
    ],
)
def test_features_or_a_catalog_not_both(files: list[str], tmp_path: Path, added: list[str], message: str) -> None:
    ShapesWorld(classes=2, items=2).catalog().write(tmp_path / "c.parquet")
    evaluate(*draw_task_set(), "ncc").write(tmp_path / "r.parquet")
    given = [str(tmp_path / name) if name.endswith(".parquet") else name for name in added]
    outcome = CliRunner().invoke(app, ["evaluate", *given, "-o", "r"])
    assert isinstance(outcome.exception, ShotproofError)
    assert message in str(outcome.exception)
