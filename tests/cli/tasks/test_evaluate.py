from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from shotproof.cli.tasks.evaluate import evaluate as verb
from shotproof.core.errors import ShotproofError
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.results import Results
from shotproof.features.features import Features
from shotproof.methods.method import DEFAULT_METHODS
from shotproof.pipeline.steps import file_name
from shotproof.stats.intervals import sampler_interval
from tests.drawn_tasks import draw_task_set

app = typer.Typer()
app.command()(verb)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    tasks, features = draw_task_set()
    tasks.write(tmp_path / "tasks.parquet")
    features.write(tmp_path / "features.parquet")
    return [
        str(tmp_path / "tasks.parquet"),
        "--features",
        str(tmp_path / "features.parquet"),
        "-o",
        str(tmp_path / "r"),
    ]


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
    for extra in (["--method", "nccc"], ["--device", "nowhere"], ["--features", str(tmp_path / "missing.parquet")]):
        outcome = CliRunner().invoke(app, [*files, *extra])
        assert isinstance(outcome.exception, ShotproofError)
    assert not (tmp_path / "r").exists()


OTHER = f"{file_name('hf:other/net')}.parquet"


def test_several_features_go_into_a_folder_and_all_stands_for_every_head(files: list[str], tmp_path: Path) -> None:
    _, features = draw_task_set()
    scaled_up = Features.from_array(features.table.column("item"), 2 * features.array, name="hf:other/net")
    scaled_up.write(tmp_path / "other")
    more = ["--features", str(tmp_path / "other")]
    outcome = CliRunner().invoke(app, [*files, *more, "-m", "ncc", "-m", "cosine"])
    assert outcome.exit_code == 0, outcome.output
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["drawn.parquet", OTHER]
    scaled = Results.read(tmp_path / "r" / OTHER)
    assert scaled.methods == ["ncc", "cosine"]
    assert scaled.digest == evaluate(*draw_task_set(), ["ncc", "cosine"]).digest
    with pytest.raises(ShotproofError, match="go into a folder"):
        CliRunner().invoke(app, [*files[:-1], "r.parquet", *more], catch_exceptions=False)
    with pytest.raises(ShotproofError, match="same name"):
        CliRunner().invoke(app, [*files, "--features", files[2]], catch_exceptions=False)
