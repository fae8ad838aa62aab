"""`shotproof cure`: what it prints, and one line and exit status 2 for what it refuses."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import shotproof as sp
from shotproof.cli.app import main
from shotproof.cures.cure import Cure
from tests.cured_run import ENCODER, WORLD, world_catalog

Shotproof = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with random and FewSTAB tasks, and results on them."""
    folder = tmp_path_factory.mktemp("evaluated")
    catalog, words = world_catalog(), WORLD.attributes()
    features = sp.encode(WORLD.catalog(), ENCODER)
    for name, value in (("catalog", catalog), ("words", words), ("features", features)):
        value.write(folder / f"{name}.parquet")
    for sampler, attributes in (("random", None), ("fewstab", words)):
        tasks = sp.sample(catalog, sampler, attributes=attributes, way=3, shot=2, query=4, tasks=30, split="test")
        tasks.write(folder / f"tasks-{sampler}.parquet")
        sp.evaluate(tasks, features, "ncc").write(folder / f"results-{sampler}.parquet")
    return folder


@pytest.fixture
def folder(evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(evaluated, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shotproof(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shotproof:
    """Run a command in this process, and return exit status, standard output and standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["shotproof", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return command


def test_it_prints_what_to_do_the_table_and_the_page(shotproof: Shotproof, folder: Path) -> None:
    only = ["--only", "preprocess", "--only", "encoder", "--only", "leace(by='words')"]
    status, out, err = shotproof("cure", ".", *only, "--tasks", 8)
    assert status == 0
    cure = Cure.read(folder)
    words = " ".join(out.split())
    for sentence in cure.sentences():
        assert " ".join(sentence.split()) in words
    for row in cure.tried:
        assert row.effects[0].outcome in out
        assert f"{row.accuracy_after.mean:.1f}" in out
    assert "cure.html" in out
    assert (folder / "cure.html").is_file()
    # What could not be tried is named with its reason, beside the progress.
    assert "not tried encoder: the run has no other encoder" in err
    assert "classes: fit on 6 classes" in err
    if cure.recommended is not None:
        assert "To apply" in out
    assert json.loads((folder / "cure.json").read_text())["tried"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--only", "preproces"], "'preprocess'"),
        (["--only", "nap(by='word')"], "'words'"),
        (["--method", "nc"], "'ncc'"),
        (["--encoder", "dial"], ENCODER),
        (["--shot", "4"], "expected one of 2, found 4"),
        (["--shot", "0"], "--shot"),
        (["--tasks", "1"], "--tasks"),
        (["--level", "1.5"], "level: expected a number above 0, at most 1"),
        (["--only", "encoder", "--only", "nap(by='changes')"], "no remedy could be tried: encoder: "),
    ],
)
def test_what_is_refused_ends_it_with_one_line(
    shotproof: Shotproof, folder: Path, arguments: list[str], hint: str
) -> None:
    status, out, err = shotproof("cure", ".", *arguments)
    assert status == 2
    assert out == ""
    assert hint in err.splitlines()[-1]
    assert "Traceback" not in err
    assert not (folder / "cure.json").exists()


def test_folders_without_what_is_needed_are_refused(shotproof: Shotproof, folder: Path) -> None:
    for name in ("tasks-fewstab", "results-fewstab"):
        (folder / f"{name}.parquet").unlink()
    status, _, err = shotproof("cure", ".")
    assert status == 2
    assert "fewstab, ood or changed" in err.splitlines()[-1]
    for arguments, hint in ((["cure", "nowhere"], "nowhere"), (["cure"], "folder")):
        status, _, err = shotproof(*arguments)
        assert status == 2
        assert hint.lower() in err.lower()
        assert "Traceback" not in err
    (folder / "features.parquet").unlink()
    status, _, err = shotproof("cure", ".")
    assert status == 2
    assert "Traceback" not in err


def test_remedies_are_listed_and_explained(shotproof: Shotproof) -> None:
    status, out, _ = shotproof("show", "remedies")
    assert status == 0
    for name in sp.remedies:
        assert name in out
    status, out, _ = shotproof("show", "nap")
    assert status == 0
    assert "numbers of directions to try" in out
