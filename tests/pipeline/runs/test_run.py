"""A run of an experiment: what it makes, tells and keeps, and what it refuses before anything is made."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.layout import read_layout
from shotproof.core.errors import InputError, UnknownName, UnreadableItem, WriteFailed
from shotproof.features.features import Features
from shotproof.pipeline.profile.profile import profile
from shotproof.pipeline.read import read
from shotproof.pipeline.steps.steps import MANIFEST
from shotproof.pipeline.study import Study, run
from tests.experiment_files import up_to_results
from tests.pipeline.shapes_experiment import ENCODER, EXPERIMENT, FILES, bytes_of


def test_the_whole_path_and_then_nothing_to_do(experiment: Path) -> None:
    first = run(experiment)
    out = experiment.parent / "out"
    assert sorted(up_to_results(first.made)) == FILES
    assert first.reused == []
    assert first.compare().methods == ["ncc", "knn"]
    written = bytes_of(out)
    assert sorted(written) == sorted([*first.made, MANIFEST])
    second = run(experiment)
    assert second.made == []
    assert sorted(second.reused) == sorted(first.made)
    assert bytes_of(out) == written
    assert second.compare().to_json() == first.compare().to_json()


def test_a_second_run_in_the_same_folder_is_told_that_there_is_one(experiment: Path) -> None:
    def second(line: str) -> None:
        if "tasks-random-3way-1shot" in line:
            with pytest.raises(InputError, match=r"out: another run .* this folder"):
                run(experiment)

    assert sorted(up_to_results(run(experiment, verbose=True, log=second).made)) == FILES
    assert run(experiment).made == []


def test_an_interrupted_run_goes_on_where_it_stopped(experiment: Path) -> None:
    class Interrupt(Exception):
        pass

    def stop(line: str) -> None:
        if "tasks-random-3way-2shot" in line:
            raise Interrupt

    with pytest.raises(Interrupt):
        run(experiment, verbose=True, log=stop)
    rest = run(experiment)
    assert "catalog.parquet" in rest.reused
    assert "tasks-random-3way-1shot.parquet" in rest.reused
    assert "tasks-random-3way-2shot.parquet" in up_to_results(rest.made)


def test_a_dry_run_tells_and_writes_nothing(experiment: Path) -> None:
    lines: list[str] = []
    run(experiment, dry_run=True, log=lines.append)
    assert not (experiment.parent / "out").exists()
    assert lines[:2] == ["would write  catalog.parquet", "would write  attributes.parquet"]
    run(experiment)
    assert sorted(run(experiment, dry_run=True).reused) == FILES


def test_the_manifest_says_what_was_made_when(finished: Path) -> None:
    manifest = json.loads((finished.parent / "out" / MANIFEST).read_text())
    assert sorted(manifest["current"]) == FILES
    assert all(entry["made"].startswith("20") for entry in manifest["files"].values())


def test_a_run_tells_one_line_with_a_time_per_step(experiment: Path) -> None:
    lines: list[str] = []
    run(experiment, log=lines.append)
    steps = ["catalog", "attributes", "features", "tasks", "evaluation", "intervals", "report"]
    assert [line.split()[0] for line in lines] == steps
    assert all(re.search(r" \d+\.\d s$", line) for line in lines)
    assert "50 items, 5 classes" in lines[0]
    assert "12 files" in lines[4]
    assert "sampler" in lines[5]
    again: list[str] = []
    run(experiment, log=again.append)
    assert all("up to date" in line for line in again)
    assert again[-1] == f"nothing to compute: all {len(run(experiment).reused)} files are up to date"


def test_a_finished_run_is_compared_without_an_evaluation(experiment: Path) -> None:
    experiment.write_text(EXPERIMENT.replace('intervals = ["sampler"]', ""))
    made, out = run(experiment), experiment.parent / "out"
    written = bytes_of(out)
    study = read(out)
    assert isinstance(study, Study)
    assert study.compare().to_json() == made.compare().to_json()
    assert study.made == []
    assert sorted(study.reused) == sorted(name for name in made.made if name.startswith("reevaluations/"))
    study.compare(intervals="classes")
    assert {name.split("-")[0] for name in study.made} == {"reevaluations/classes"}
    assert bytes_of(out) == written


def test_files_are_named_if_asked(experiment: Path) -> None:
    lines: list[str] = []
    run(experiment, verbose=True, log=lines.append)
    assert "writing      catalog.parquet" in lines
    again: list[str] = []
    run(experiment, verbose=True, log=again.append)
    assert sorted(up_to_results([line.split()[-1] for line in again if line.startswith("up to date")])) == FILES


def test_a_folder_belongs_to_one_experiment_on_one_data_set(finished: Path) -> None:
    there = bytes_of(finished.parent / "out")
    shutil.copytree(finished.parent / "world", finished.parent / "other")
    text = finished.read_text()
    finished.write_text(text.replace('root = "world"', 'root = "other"'))
    for dry_run in (True, False):
        with pytest.raises(InputError, match=r"belongs to .* on .*world, but this is .* on .*other: .*--output"):
            run(finished, dry_run=dry_run)
    (finished.parent / "second.toml").write_text(text)
    with pytest.raises(InputError, match=r"belongs to .*experiment.toml on .*, but this is .*second.toml on .*world"):
        run(finished.parent / "second.toml")
    with pytest.raises(InputError, match=r"belongs to .*experiment.toml on .*world, but this is shotproof profile on"):
        profile(finished.parent / "world", finished.parent / "out", encoder="pixels", query=4)
    assert bytes_of(finished.parent / "out") == there
    finished.write_text(text.replace("tasks = 12", "tasks = 6"))  # a change of the same experiment
    assert up_to_results(run(finished).made) != []


def test_an_experiment_that_is_moved_with_its_data_goes_on(finished: Path, tmp_path: Path) -> None:
    moved = finished.parent.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    assert run(moved / finished.name).compare().blocks


@pytest.mark.parametrize("step", ["features", "intervals"])
def test_a_folder_that_is_removed_in_the_middle_is_told_so(experiment: Path, step: str) -> None:
    def remove(line: str) -> None:
        if line.startswith(step):
            shutil.rmtree(experiment.parent / "out")

    with pytest.raises(WriteFailed, match="out was removed or replaced"):
        run(experiment, log=remove)


def test_features_from_files_are_called_by_the_names_of_these(experiment: Path) -> None:
    items = read_layout(experiment.parent / "world", "folder").items
    for folder in ("a", "b"):
        (experiment.parent / folder).mkdir()
        values = np.random.default_rng(0).normal(size=(len(items), 4))
        np.savez(experiment.parent / folder / "x.npz", items=np.array(items), features=values)
    experiment.write_text(EXPERIMENT.replace('"pixels(size=4)"', '"file:a/x.npz", "file:b/x.npz"'))
    made = [name for name in run(experiment, dry_run=True).made if name.startswith("features")]
    assert made[0] == "features-file-x.npz.parquet"
    assert re.fullmatch(r"features-file-x\.npz-[0-9a-f]{6}\.parquet", made[1])


def test_unreadable_images_end_a_run_and_are_all_named_with_the_way_to_go_on(experiment: Path) -> None:
    broken = sorted((experiment.parent / "world").rglob("*.png"))[:3]
    for image in broken:
        image.write_bytes(b"no image")
    lines: list[str] = []
    with pytest.raises(UnreadableItem, match=r'3 files of 50 items cannot.*--skip-bad.* on_error = "skip"') as error:
        run(experiment, log=lines.append)
    assert all(str(image) in str(error.value) for image in broken)
    assert not any(line.startswith("features") for line in lines)
    experiment.write_text(EXPERIMENT.replace('detectors = ["photometric"]', 'file = "words.parquet"'))
    catalog = read_layout(experiment.parent / "world", "folder")
    Attributes.from_words({item: ["a"] for item in catalog.items}).write(experiment.parent / "words.parquet")
    experiment.write_text(experiment.read_text().replace("tasks = 12", 'tasks = 12\nsamplers = ["random"]'))
    with pytest.raises(UnreadableItem, match="3 files of 50 items cannot be read"):  # where no detector has met them
        run(experiment)


def test_images_that_cannot_be_read_end_a_run_though_another_detector_knows_them(experiment: Path) -> None:
    catalog = read_layout(experiment.parent / "world", "folder")
    catalog.paths[0].write_bytes(b"no image")
    rows = "".join(f"{item},striped\n" for item in catalog.items)
    (experiment.parent / "words.csv").write_text(f"item,attribute\n{rows}")
    together = """detectors = ["photometric", "table(file='words.csv')"]"""
    experiment.write_text(EXPERIMENT.replace('detectors = ["photometric"]', together))
    with pytest.raises(UnreadableItem, match="1 file of 50 items cannot be read"):
        run(experiment)


def test_unreadable_images_are_left_out_when_asked(experiment: Path, caplog: pytest.LogCaptureFixture) -> None:
    image = sorted((experiment.parent / "world").rglob("*.png"))[0]
    image.write_bytes(b"no image")
    experiment.write_text(EXPERIMENT.replace('["pixels(size=4)"]', '["pixels(size=4)"]\non_error = "skip"'))
    lines: list[str] = []
    with caplog.at_level("WARNING"):
        run(experiment, log=lines.append)
    told = [*caplog.messages, *lines]
    assert len([line for line in told if image.stem in line]) == 1
    assert "1 of 50 items cannot be read" in caplog.text
    study = read(experiment.parent / "out")
    skipped = study.inputs.features[0].record.skipped  # type: ignore[union-attr]
    assert len(skipped) == 1
    tasks = study.tasks[0].table  # type: ignore[union-attr]
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
            r"\[output\], intervals: expected .* found \['image'\]: did you mean 'images'",
        ),
        ('["sampler"]', "[]", InputError, r"\[output\], intervals: expected a list of .*, at least one"),
        ("tasks = 12", "tasks = 12\nplacebo = 1", InputError, r"\[tasks\], placebo: expected True or False"),
        ('["sampler"]', '["sampler"]\nmetric = "wac"', InputError, "metric: expected acc or wacc, found 'wac'"),
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
