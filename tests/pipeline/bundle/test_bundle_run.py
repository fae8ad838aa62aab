"""Somebody else runs the same tasks on an encoder of their own, in an empty folder."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shotproof.catalog.catalog import Catalog
from shotproof.cli.app import app
from shotproof.comparison.card import Card
from shotproof.core.errors import InputError
from shotproof.core.trust import NotTrusted
from shotproof.features.encoder import encode
from shotproof.pipeline.bundle.bundle_run import run_bundle
from shotproof.pipeline.experiment import Experiment
from shotproof.pipeline.profile.profile import Profile
from shotproof.pipeline.start import MADE_BY, StartOptions, start_experiment
from shotproof.pipeline.study import run
from shotproof.tasks.taskset import TaskSet
from tests.pipeline.bundle.test_bundle import contents_of, saying, zipped


@pytest.fixture(scope="module")
def elsewhere(profiled: Profile, bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the zip and a copy of the data, and nothing else."""
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copy(bundled, folder)
    shutil.copytree(profiled.folder.parent / "data" / "shapes", folder / "pictures")
    return folder


def test_the_same_encoder_gives_the_same_card(
    profiled: Profile, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(elsewhere)
    given = ["--root", "pictures", "--encoder", "pixels", "-o", "mine", "--workers", "1", "--no-progress"]
    ran = CliRunner().invoke(app, ["run", "shapes.zip", *given])
    assert ran.exit_code == 0, ran.output
    mine, theirs = Card.read(elsewhere / "mine"), profiled.card
    assert [axis.tasks.digest for axis in mine.axes] == [axis.tasks.digest for axis in theirs.axes]
    assert [axis.by_task for axis in mine.axes] == [axis.by_task for axis in theirs.axes]
    record = TaskSet.read(next((elsewhere / "mine").glob("tasks-semantic*"))).record
    assert record.options["class_distances"] == "mine/bundle/tree.csv"  # came along: intervals draw the tasks anew
    assert (mine.method, mine.quick, mine.missing) == ("ncc", True, theirs.missing)
    assert Experiment.read(elsewhere / "mine" / "experiment.toml").task_files
    again = CliRunner().invoke(app, ["run", "shapes.zip", *given, "--verbose"])
    assert "up to date" in again.output
    assert "writing" not in again.output


def test_another_encoder_and_method_on_features_need_no_data(
    profiled: Profile, elsewhere: Path, tmp_path: Path
) -> None:
    encode(Catalog.read(profiled.folder / "catalog.parquet"), "pixels(size=2)").write(tmp_path / "mine.parquet")
    found = run_bundle(
        elsewhere / "shapes.zip",
        encoder=f"file:{tmp_path / 'mine.parquet'}",
        method="ridge(penalty=3)",
        output=tmp_path / "out",
    )
    assert found.card.method == "ridge(penalty=3)"
    assert [baseline.method for baseline in found.card.axes[0].baselines] == ["ncc", "ridge"]


def test_data_that_lacks_items_is_refused_and_nothing_written(elsewhere: Path, tmp_path: Path) -> None:
    file, out = elsewhere / "shapes.zip", tmp_path / "out"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"lacks 40 of 40 items, e\.g\. '.*': expected the folder 'shapes' of"):
        run_bundle(file, tmp_path / "empty", encoder="pixels", output=out)
    with pytest.raises(InputError, match=r"expected the data \(--root\), the folder 'shapes'"):
        run_bundle(file, encoder="pixels", output=out)
    refused = CliRunner().invoke(app, ["run", str(file), "--root", str(tmp_path)])
    assert "--encoder lite0" in str(refused.exception)
    assert not out.exists()


def test_a_folder_with_other_files_is_left_alone(elsewhere: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "bundle").mkdir(parents=True)
    (tmp_path / "out" / "bundle" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        run_bundle(elsewhere / "shapes.zip", elsewhere / "pictures", encoder="pixels", output=tmp_path / "out")
    assert (tmp_path / "out" / "bundle" / "thesis.txt").read_text() == "mine"


@pytest.mark.strangers
def test_code_that_a_bundle_names_is_not_imported_unless_it_is_trusted(
    bundled: Path, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n"
    (tmp_path / "stranger.py").write_text(f"{code}def head(support, labels, query):\n    return query\n")
    monkeypatch.syspath_prepend(tmp_path)
    theirs = saying(contents_of(bundled), lambda manifest: manifest["methods"].append("python:stranger:head"))
    file = zipped(tmp_path / "x.zip", theirs)
    with pytest.raises(NotTrusted, match="runs the code of the module stranger"):
        run_bundle(file, elsewhere / "pictures", encoder="pixels", output=tmp_path / "out")
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / "out").exists()


def test_a_method_that_the_user_has_typed_is_trusted(elsewhere: Path, tmp_path: Path) -> None:
    (tmp_path / "heads.py").write_text("def head(support, labels, query):\n    return query @ support.T\n")
    with pytest.raises(InputError) as raised:
        run_bundle(
            elsewhere / "shapes.zip",
            tmp_path,
            encoder="pixels",
            method=f"{tmp_path / 'heads.py'}:head",
            output=tmp_path / "out",
        )
    assert "lacks 40 of 40 items" in str(raised.value)  # which is looked at after the method was made


def test_a_folder_of_something_else_is_refused_before_anything_is_replaced(elsewhere: Path, tmp_path: Path) -> None:
    data = elsewhere / "pictures"
    own, _ = start_experiment(data, tmp_path / "out", StartOptions(("pixels",), ("ncc",), 5))
    run(replace(own, draws=(replace(own.draws[0], shots=(1,), query=2),)), made_by=MADE_BY)
    before = sorted((tmp_path / "out").rglob("*"))
    with pytest.raises(
        InputError, match=r"belongs to shotproof run on .*, but this is bundle shapes \([0-9a-f]{12}\) on"
    ):
        run_bundle(elsewhere / "shapes.zip", data, encoder="pixels", output=tmp_path / "out")
    assert sorted((tmp_path / "out").rglob("*")) == before
