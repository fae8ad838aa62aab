"""A run of an experiment: what it makes, tells and keeps, and what it refuses before anything is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError, UnknownName
from shotproof.features.features import Features
from shotproof.pipeline.material import read
from shotproof.pipeline.run import run
from shotproof.pipeline.steps.steps import MANIFEST
from tests.pipeline.shapes_experiment import ENCODER, EXPERIMENT, FILES, bytes_of


def test_the_whole_path_and_then_nothing_to_do(experiment: Path) -> None:
    first = run(experiment)
    out = experiment.parent / "out"
    assert sorted(first.made) == FILES
    assert first.reused == []
    assert first.comparison is not None
    assert first.comparison.methods == ["ncc", "knn"]
    written = bytes_of(out)
    assert sorted(written) == sorted([*FILES, MANIFEST, "report.html"])
    second = run(experiment)
    assert second.made == []
    assert sorted(second.reused) == FILES
    assert bytes_of(out) == written
    assert second.comparison is not None
    assert second.comparison.to_json() == first.comparison.to_json()


def test_a_second_run_in_the_same_folder_is_told_that_there_is_one(experiment: Path) -> None:
    def second(line: str) -> None:
        if "tasks-random-3way-1shot" in line:
            with pytest.raises(InputError, match="out: another run is at work in this folder"):
                run(experiment)

    assert sorted(run(experiment, tell=second).made) == FILES
    assert run(experiment).made == []


def test_an_interrupted_run_goes_on_where_it_stopped(experiment: Path) -> None:
    class Interrupt(Exception):
        pass

    def stop(line: str) -> None:
        if "tasks-random-3way-2shot" in line:
            raise Interrupt

    with pytest.raises(Interrupt):
        run(experiment, tell=stop)
    rest = run(experiment)
    assert "catalog.parquet" in rest.reused
    assert "tasks-random-3way-1shot.parquet" in rest.reused
    assert "tasks-random-3way-2shot.parquet" in rest.made


def test_a_dry_run_tells_and_writes_nothing(experiment: Path) -> None:
    lines: list[str] = []
    outcome = run(experiment, dry_run=True, tell=lines.append)
    assert outcome.comparison is None
    assert not (experiment.parent / "out").exists()
    assert lines[:2] == ["would make   catalog.parquet", "would make   attributes.parquet"]
    run(experiment)
    assert sorted(run(experiment, dry_run=True).reused) == FILES


def test_the_manifest_says_what_was_made_when(finished: Path) -> None:
    manifest = json.loads((finished.parent / "out" / MANIFEST).read_text())
    assert sorted(manifest["current"]) == FILES
    assert all(entry["made"].startswith("20") for entry in manifest["files"].values())


def test_an_unreadable_image_ends_a_run_or_is_left_out_when_asked(
    experiment: Path, caplog: pytest.LogCaptureFixture
) -> None:
    image = sorted((experiment.parent / "world").rglob("*.png"))[0]
    image.write_bytes(b"no image")
    with pytest.raises(InputError, match=image.name):
        run(experiment)
    experiment.write_text(EXPERIMENT.replace('["pixels(size=4)"]', '["pixels(size=4)"]\non_error = "skip"'))
    lines: list[str] = []
    with caplog.at_level("WARNING"):
        run(experiment, tell=lines.append)
    assert image.stem in caplog.text
    assert any(line.startswith("left out     1 unreadable") for line in lines)
    material = read(experiment.parent / "out")
    skipped = material.features[0].record.skipped  # type: ignore[union-attr]
    assert len(skipped) == 1
    tasks = material.tasks[0].table  # type: ignore[union-attr]
    used = {item for side in ("support", "query") for row in tasks.column(side).to_pylist() for item in row}
    assert skipped[0] not in used


def test_one_split_alone_is_all_that_anything_is_made_of(experiment: Path) -> None:
    catalog = read_layout(experiment.parent / "world", "folder")
    labels = sorted(set(catalog.table.column("label").to_pylist()))
    rows = [f"{label},{'train' if label == labels[-1] else 'test'}\n" for label in labels]
    (experiment.parent / "splits.csv").write_text("label,split\n" + "".join(rows))
    text = EXPERIMENT.replace('root = "world"', 'root = "world"\nsplits = "splits.csv"\nsplit = "test"')
    experiment.write_text(text.replace("tasks = 12", 'tasks = 2\nsamplers = ["random"]'))
    run(experiment)
    features = Features.read(experiment.parent / "out" / f"features-{ENCODER}.parquet")
    expected = [one["item"] for one in catalog.table.to_pylist() if one["label"] != labels[-1]]
    assert features.table.column("item").to_pylist() == expected
    experiment.write_text(text.replace('split = "test"', 'split = "tst"'))
    with pytest.raises(UnknownName, match=r"\[catalog\]: unknown split 'tst': did you mean 'test'"):
        run(experiment, dry_run=True)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("knn", "knnn", UnknownName, "unknown method 'knnn'"),
        ("pixels(size=4)", "pixel", UnknownName, "unknown encoder 'pixel'"),
        ("photometric", "photometry", UnknownName, "unknown detector"),
        ("detectors = ", "# detectors = ", InputError, r"add a section \[attributes\]"),
        (
            '["sampler"]',
            '["image"]',
            InputError,
            r"\[output\], intervals: unknown interval 'image': did you mean 'images'",
        ),
        ('["sampler"]', "[]", InputError, r"\[output\]: intervals must be a list of .*, at least one"),
        ("tasks = 12", "tasks = 12\nplacebo = 1", InputError, r"\[tasks\]: placebo must be"),
        ('["sampler"]', '["sampler"]\nmetric = "wac"', InputError, "metric must be acc or wacc, not 'wac'"),
        ('root = "world"', 'root = "wrld"', InputError, "wrld does not exist"),
    ],
)
def test_bad_names_are_told_before_anything_is_made(
    experiment: Path, old: str, new: str, error: type[Exception], message: str
) -> None:
    experiment.write_text(EXPERIMENT.replace(old, new))
    with pytest.raises(error, match=message):
        run(experiment)
    assert not (experiment.parent / "out").exists() or "attributes" in message
