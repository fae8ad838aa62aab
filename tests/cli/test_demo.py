"""The demos that train networks, with fewer and smaller trainings."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import shotproof as sp
from shotproof.cli import demo
from shotproof.cli.app import app
from shotproof.core.errors import InputError
from shotproof.cures.cure import Cure

pytestmark = pytest.mark.slow


def test_networks_are_trained_at_each_degree_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_DEGREES", (0.0, 1.0))
    monkeypatch.setattr(demo, "_TRAINED_WORLD", {**demo._TRAINED_WORLD, "classes": 12, "train_classes": 6})
    monkeypatch.setattr(demo, "_TRAINING", {**demo._TRAINING, "epochs": 1, "tasks": 2})
    smaller = demo._TRAINED_EXPERIMENT.replace("tasks = 600", "tasks = 20") + 'intervals = ["sampler"]\n'
    monkeypatch.setattr(demo, "_TRAINED_EXPERIMENT", smaller)
    where = ["-o", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "--workers", "1", "--device", "cpu"]
    done = CliRunner().invoke(app, ["demo", "--train", *where], catch_exceptions=False)
    assert done.exit_code == 0
    models = [sp.Model.read(tmp_path / "out" / f"shortcut-{degree}.model") for degree in (0, 100)]
    tested = sp.read(tmp_path / "out" / "world" / "catalog.parquet")
    assert isinstance(tested, sp.Catalog)
    labels = set(tested.table.column("label").to_pylist())
    assert all(len(model.record.classes) == 6 and labels.isdisjoint(model.record.classes) for model in models)
    for name in ("shortcut-0", "shortcut-100"):
        assert f"ncc on {name}" in done.stdout
        assert name in (tmp_path / "out" / "report.html").read_text()
    assert {"fewstab", "hard-ood"} <= {task.record.sampler.name for task in sp.read(tmp_path / "out").tasks}  # type: ignore[union-attr]


def test_the_demo_says_in_words_who_leans_on_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_TESTED_WORLD", {"items": 10, "size": 16})
    monkeypatch.setattr(demo, "_TRAINING_WORLD", {"items": 2, "size": 16})
    monkeypatch.setattr(demo, "_SCENES_TRAINING", {**demo._SCENES_TRAINING, "size": 16, "epochs": 1, "tasks": 2})
    smaller = demo._EXPERIMENT.replace("tasks = 300", "tasks = 20") + 'intervals = ["sampler"]\n'
    monkeypatch.setattr(demo, "_EXPERIMENT", smaller)
    where = ["-o", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "--workers", "1", "--device", "cpu"]
    done = CliRunner().invoke(app, ["demo", *where], catch_exceptions=False)
    assert done.exit_code == 0
    report = (tmp_path / "out" / "report.html").read_text()
    for name in ("everywhere", "at-home"):
        assert f"- {name}, trained on other animals" in done.stdout
        assert name in report
    # Colors alone tell the places apart: networks that have hardly learned anything go by them.
    assert "It relies on the background" in done.stdout
    assert "was named" in done.stdout
    assert "95% sampler interval" in done.stdout
    assert "shotproof run FOLDER" in done.stdout
    assert "Fooled by the background" in report
    assert "What helps?" in done.stdout
    assert Cure.read(tmp_path / "out").encoder == "model:at-home.model"
    steps = ["drawing", *["training"] * 2, "catalog", "features", "tasks", "evaluation", "intervals", "cure", "report"]
    assert [line.split()[0] for line in done.stderr.splitlines()] == steps
    again = CliRunner().invoke(app, ["demo", *where], catch_exceptions=False)  # a demo of ours goes on
    assert again.exit_code == 0
    (tmp_path / "out" / "experiment.toml").write_text("mine")
    changed = CliRunner().invoke(app, ["demo", *where])
    assert "run it with shotproof run" in str(changed.exception)
    assert (tmp_path / "out" / "experiment.toml").read_text() == "mine"


@pytest.mark.parametrize("kind", [[], ["--sound"], ["--train"]])
def test_a_folder_that_holds_other_things_is_left_alone(kind: list[str], tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    done = CliRunner().invoke(app, ["demo", *kind, "-o", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "has other contents" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


def test_two_demos_at_a_time_are_refused() -> None:
    done = CliRunner().invoke(app, ["demo", "--train", "--sound"])
    assert isinstance(done.exception, InputError)
