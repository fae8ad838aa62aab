"""One command on a folder: images, sounds, and class folders inside an images folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from shotproof.core.errors import InputError
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.start import StartOptions, start_experiment
from shotproof.pipeline.study import run
from shotproof.worlds.shapes import ShapesWorld
from tests.drawn_clips import tone
from tests.experiment_files import up_to_results


def test_a_folder_of_images_gets_attributes_and_fewstab(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    read, _ = start_experiment(tmp_path / "shapes", tmp_path / "out")
    assert read == Experiment.read(tmp_path / "out" / "experiment.toml")
    assert read.root is not None
    assert read.root.resolve() == tmp_path / "shapes"
    assert [str(draw.sampler) for draw in read.draws] == ["random", "fewstab"]
    assert [str(encoder) for encoder in read.encoders] == ["lite0"]
    assert list(read.detectors[""]) != []


def test_an_experiment_that_is_there_stays(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    start_experiment(tmp_path / "shapes", tmp_path / "out")
    path = tmp_path / "out" / "experiment.toml"
    path.write_text(path.read_text().replace("lite0", "pixels"))
    changed = path.read_text()
    read, _ = start_experiment(tmp_path / "shapes", tmp_path / "out")
    assert [str(encoder) for encoder in read.encoders] == ["pixels"]
    assert path.read_text() == changed


def test_options_are_written_into_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    (tmp_path / "heads.py").write_text("def head(support, labels, query):\n    return query @ support.T\n")
    options = StartOptions(("pixels(size=4)",), ("knn", "heads.py:head"), 20, skip_bad=True, skip_small=True)
    read, trusted = start_experiment(Path("shapes"), Path("out"), options)
    assert read == Experiment.read(Path("out/experiment.toml"), trusted)
    assert [str(encoder) for encoder in read.encoders] == ["pixels(size=4)"]
    assert [method.spelling for method in read.methods] == ["knn", "../heads.py:head"]
    assert read.on_error == "skip"
    assert {(str(draw.sampler), draw.tasks) for draw in read.draws} == {
        (f"{name}(skip_small_classes=True)", 20) for name in ("random", "fewstab")
    }


def test_other_options_write_the_experiment_anew_unless_its_user_has_changed_it(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    start_experiment(tmp_path / "shapes", tmp_path / "out", StartOptions(("pixels",), tasks=20))
    read, _ = start_experiment(tmp_path / "shapes", tmp_path / "out", StartOptions(("pixels",), tasks=30))
    assert read.draws[0].tasks == 30
    again, _ = start_experiment(tmp_path / "shapes", tmp_path / "out")
    assert again.draws[0].tasks == 30
    path = tmp_path / "out" / "experiment.toml"
    path.write_text(path.read_text().replace("query = 15", "query = 4"))
    with pytest.raises(InputError, match=r"was edited by hand.*--output"):
        start_experiment(tmp_path / "shapes", tmp_path / "out", StartOptions(("pixels",), tasks=40))
    assert "query = 4" in path.read_text()


def test_the_experiment_of_another_folder_is_refused_with_both_roots(tmp_path: Path) -> None:
    for name in ("A", "B"):
        ShapesWorld(classes=6, items=4, size=24).write(tmp_path / name / "pics")
    start_experiment(tmp_path / "A" / "pics", tmp_path / "pics-results")  # interrupted before its first file
    with pytest.raises(InputError, match=r"belongs to .*A/pics, but this is .*B/pics: .*--output"):
        start_experiment(tmp_path / "B" / "pics", tmp_path / "pics-results")


@pytest.mark.parametrize("odd", ["catalog = 5", "evaluate = 3", "[features]\nencoders = 7", "[tasks]\ntasks = 'many'"])
@pytest.mark.parametrize("options", [StartOptions(), StartOptions(("pixels",), tasks=30)])
def test_an_experiment_file_of_anything_else_is_refused(tmp_path: Path, odd: str, options: StartOptions) -> None:
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    (tmp_path / "out").mkdir()
    catalog = "" if odd.startswith("catalog") else '\n[catalog]\nroot = "../shapes"\n'
    (tmp_path / "out" / "experiment.toml").write_text(f"{odd}\n{catalog}")
    with pytest.raises(InputError):
        start_experiment(tmp_path / "shapes", tmp_path / "out", options)


def test_a_dry_run_writes_nothing_and_finds_files_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = ShapesWorld(classes=6, items=20, size=24).write(tmp_path / "shapes")
    np.savez("features.npz", items=np.array(catalog.items), features=np.zeros((len(catalog), 2)))
    before = sorted(tmp_path.rglob("*"))
    options = StartOptions(("file:features.npz",), ("ncc",), 10)
    read, trusted = start_experiment(Path("shapes"), Path("shapes-results"), options, dry_run=True)
    dry = run(read, dry_run=True, trust=trusted, made_by="shotproof run")
    assert "features-file-features.npz.parquet" in up_to_results(dry.made)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_wrong_option_leaves_nothing_behind(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=4, size=24).write(tmp_path / "shapes")
    with pytest.raises(InputError, match=r"^the experiment, \[evaluate\], methods: unknown method 'knnn'"):
        start_experiment(tmp_path / "shapes", tmp_path / "out", StartOptions(methods=("knnn",)))
    assert not (tmp_path / "out").exists()


def test_class_folders_inside_an_images_folder(tmp_path: Path) -> None:
    ShapesWorld(classes=6, items=20, size=24).write(tmp_path / "birds" / "images")
    read, _ = start_experiment(tmp_path / "birds", tmp_path / "out")
    dry = run(read, dry_run=True)
    assert "catalog.parquet" in up_to_results(dry.made)


def test_a_folder_of_sounds_runs_a_sound_experiment(tmp_path: Path) -> None:
    for label in range(6):
        for number in range(8):
            path = tmp_path / "sounds" / f"kind{label}" / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, tone(8 * label + number), 16_000)
    path = tmp_path / "out" / "experiment.toml"
    start_experiment(tmp_path / "sounds", path.parent)
    text = path.read_text()
    assert 'encoders = ["logmel"]' in text
    small = text.replace("shots = [1, 5]", "shots = [1]").replace("query = 15", "query = 4").replace("600", "20")
    path.write_text(f'{small}\n[runtime]\ncache = "cache"\n')
    done = run(path)
    assert [group.label for group in done.compare().groups] == ["random", "hardest"]
    assert done.compare().encoders == ["logmel"]


def test_splits_without_a_test_split_need_an_experiment_of_ones_own(tmp_path: Path) -> None:
    for split in ("train", "val"):
        ShapesWorld(classes=3, items=2, size=24).write(tmp_path / "shapes" / split)
    with pytest.raises(InputError, match="has the splits train, val but none named test"):
        start_experiment(tmp_path / "shapes", tmp_path / "out")
