from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from shotproof.errors import InputError, UnknownName
from shotproof.features.features import Features
from shotproof.run import LEDGER, run
from shotproof.worlds.shapes import ShapesWorld

EXPERIMENT = """
[catalog]
root = "world"
[attributes]
detectors = ["photometric"]
[features]
encoders = ["pixels(size=4)"]
cache = "cache"
workers = 0
[tasks]
way = 3
shots = [1, 2]
query = 4
tasks = 20
[evaluate]
methods = ["ncc", "knn"]
[output]
folder = "out"
"""
FILES = [
    "attributes.parquet",
    "catalog.parquet",
    "features-pixels-size-4.parquet",
    "results-fewstab-3way-1shot-pixels-size-4.parquet",
    "results-fewstab-3way-2shot-pixels-size-4.parquet",
    "results-random-3way-1shot-pixels-size-4.parquet",
    "results-random-3way-2shot-pixels-size-4.parquet",
    "tasks-fewstab-3way-1shot.parquet",
    "tasks-fewstab-3way-2shot.parquet",
    "tasks-random-3way-1shot.parquet",
    "tasks-random-3way-2shot.parquet",
]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    ShapesWorld(classes=6, items=16, size=32).write(tmp_path / "world")
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT)
    return path


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_whole_path_and_then_nothing_to_do(experiment: Path) -> None:
    first = run(experiment)
    out = experiment.parent / "out"
    assert sorted(first.made) == FILES
    assert first.reused == []
    assert first.comparison is not None
    assert {row.method for row in first.comparison.rows} == {"ncc", "knn"}
    written = bytes_of(out)
    assert sorted(written) == sorted([*FILES, LEDGER, "report.html"])
    second = run(experiment)
    assert second.made == []
    assert sorted(second.reused) == FILES
    assert bytes_of(out) == written


def test_only_what_depends_on_a_change_is_made_again(experiment: Path) -> None:
    run(experiment)
    experiment.write_text(EXPERIMENT.replace("shots = [1, 2]", "shots = [1, 3]"))
    again = run(experiment)
    assert sorted(again.made) == [
        "results-fewstab-3way-3shot-pixels-size-4.parquet",
        "results-random-3way-3shot-pixels-size-4.parquet",
        "tasks-fewstab-3way-3shot.parquet",
        "tasks-random-3way-3shot.parquet",
    ]
    experiment.write_text(EXPERIMENT.replace('["ncc", "knn"]', '["ridge"]'))
    again = run(experiment)
    assert all(name.startswith("results-") for name in again.made)
    assert len(again.made) == 4


def test_a_changed_image_is_seen(experiment: Path) -> None:
    run(experiment)
    out = experiment.parent / "out"
    before = Features.read(out / FILES[2]).array
    image = sorted((experiment.parent / "world").rglob("*.png"))[0]
    Image.new("RGB", (32, 32), "red").save(image)
    again = run(experiment)
    assert FILES[2] in again.made
    changed = (Features.read(out / FILES[2]).array != before).any(axis=1)
    assert changed.sum() == 1


def test_a_deleted_or_altered_output_is_made_again(experiment: Path) -> None:
    run(experiment)
    out = experiment.parent / "out"
    whole = bytes_of(out)
    (out / "tasks-random-3way-1shot.parquet").unlink()
    (out / "attributes.parquet").write_bytes(b"not what was written")
    again = run(experiment)
    assert sorted(again.made) == ["attributes.parquet", "tasks-random-3way-1shot.parquet"]
    after = bytes_of(out)
    assert {name: after[name] for name in FILES} == {name: whole[name] for name in FILES}


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


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("knn", "knnn", UnknownName, "unknown method 'knnn'"),
        ("pixels(size=4)", "pixel", UnknownName, "unknown encoder 'pixel'"),
        ("photometric", "photometry", UnknownName, "unknown detector"),
        ("tasks = 20", 'tasks = 20\nsamplers = ["fewstabb"]', UnknownName, "unknown sampler"),
        ("detectors = ", "# detectors = ", InputError, r"add a section \[attributes\]"),
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


def test_hard_tasks_of_an_encoder_like_the_random_ones_on_transformed_features(experiment: Path) -> None:
    samplers = 'samplers = ["random", { name = "hardest", like = "random" }]'
    text = EXPERIMENT.replace("tasks = 20", f"tasks = 20\n{samplers}").replace(
        "[tasks]", 'transforms = ["l2"]\n[tasks]'
    )
    experiment.write_text(text)
    outcome = run(experiment)
    assert outcome.comparison is not None
    assert outcome.comparison.encoders == ["pixels(size=4) > l2"]
    assert outcome.comparison.references == ["random"]
    assert all(row.accuracy_gap is not None and row.accuracy_gap.low > 0 for row in outcome.comparison.rows)
    assert run(experiment).made == []


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ('{ name = "hardest", like = "randm" }', "no sampler 'randm' before it to be like: did you mean 'random'?"),
        ('{ name = "hardest", encoder = "lite" }', "sampler 'hardest': no encoder 'lite'"),
    ],
)
def test_what_a_sampler_names_must_be_there(experiment: Path, sampler: str, message: str) -> None:
    experiment.write_text(EXPERIMENT.replace("tasks = 20", f'tasks = 20\nsamplers = ["random", {sampler}]'))
    with pytest.raises(InputError, match=message.replace("?", "\\?")):
        run(experiment)
