"""One command on a folder: images, sounds, and class folders inside an images folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from shotproof.core.errors import InputError
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.run import run
from shotproof.pipeline.start import experiment_of_folder
from shotproof.worlds.shapes import ShapesWorld
from tests.drawn_clips import tone


def test_a_folder_of_images_gets_attributes_and_fewstab(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    experiment_of_folder(tmp_path / "shapes", tmp_path / "out" / "experiment.toml")
    read = Experiment.read(tmp_path / "out" / "experiment.toml")
    assert read.root is not None
    assert read.root.resolve() == tmp_path / "shapes"
    assert [str(draw.sampler) for draw in read.draws] == ["random", "fewstab"]
    assert [str(encoder) for encoder in read.encoders] == ["lite0"]
    assert list(read.detectors[""]) != []


def test_an_experiment_that_is_there_stays(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    path = tmp_path / "experiment.toml"
    path.write_text("mine")
    experiment_of_folder(tmp_path / "shapes", path)
    assert path.read_text() == "mine"


def test_class_folders_inside_an_images_folder(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=20, size=24).write(tmp_path / "birds" / "images")
    experiment_of_folder(tmp_path / "birds", tmp_path / "experiment.toml")
    dry = run(tmp_path / "experiment.toml", dry_run=True)
    assert "catalog.parquet" in dry.made


def test_a_folder_of_sounds_runs_a_sound_experiment(tmp_path: Path) -> None:
    for label in range(6):
        for number in range(8):
            path = tmp_path / "sounds" / f"kind{label}" / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, tone(8 * label + number), 16_000)
    path = tmp_path / "out" / "experiment.toml"
    experiment_of_folder(tmp_path / "sounds", path)
    text = path.read_text()
    assert 'encoders = ["logmel"]' in text
    small = text.replace("shots = [1, 5]", "shots = [1]").replace("query = 15", "query = 4").replace("600", "20")
    path.write_text(f'{small}\n[runtime]\ncache = "cache"\n')
    done = run(path)
    assert done.comparison is not None
    assert [group.label for group in done.comparison.groups] == ["random", "hardest"]
    assert done.comparison.encoders == ["logmel"]


def test_splits_without_a_test_split_need_an_experiment_of_ones_own(tmp_path: Path) -> None:
    for split in ("train", "val"):
        ShapesWorld(classes=3, items=2, size=24).write(tmp_path / "shapes" / split)
    with pytest.raises(InputError, match="has the splits train, val and none called test"):
        experiment_of_folder(tmp_path / "shapes", tmp_path / "experiment.toml")
