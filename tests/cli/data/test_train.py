from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from typer.testing import CliRunner, Result

import shotproof as sp
from shotproof.cli.app import Stopped, app
from shotproof.models.objectives.prototypes import ProtoNet
from tests.small_networks import BACKBONE, SIDE, write_world

SETTINGS = "--set tasks_per_update=2 --set val_tasks=5"
SMALL = f"--way 3 --shot 2 --query 3 --epochs 2 --tasks 4 {SETTINGS} --set size={SIDE}".split()


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    write_world(folder / "world").write(folder / "catalog.parquet")
    return folder


@pytest.fixture
def catalog(drawn: Path, tmp_path: Path) -> Path:
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return tmp_path / "catalog.parquet"


def run(catalog: Path, *arguments: str) -> Result:
    folder = catalog.parent
    usual = ["train", str(catalog), "-o", str(folder / "some.model"), "--backbone", BACKBONE, *SMALL]
    where = ["--cache", str(folder / "cache"), "--workers", "1", "--device", "cpu"]
    return CliRunner().invoke(app, [*usual, *where, *arguments])


def test_it_writes_the_model_that_the_function_gives_and_says_how_good_it_is(catalog: Path) -> None:
    done = run(catalog, "--objective", "protonet", "--set", "augment=none", "--set", "milestones=[1]", "--lr", "0.002")
    assert done.exit_code == 0, done.output
    model = sp.Model.read(catalog.parent / "some.model")
    assert f"{model.name}, 6 classes, epoch {model.record.best} of 2, validation" in done.stdout
    told = model.record.settings
    assert (told["augment"], told["milestones"], told["lr"], told["way"]) == ("none", [1], 0.002, 3)
    rows = (catalog.parent / "some.model.jsonl").read_text().splitlines()
    assert [json.loads(row) for row in rows] == list(model.record.curve)


def test_several_seeds_are_several_models(catalog: Path) -> None:
    folder = catalog.parent
    few = ("--objective", "protonet", "--seed", "0", "--seed", "3", "--epochs", "1")
    named = run(catalog, *few)
    assert "put {seed} in the name" in str(named.exception)
    done = run(catalog, *few, "-o", str(folder / "{objective}-{seed}.model"))
    assert done.exit_code == 0, done.output
    assert [sp.Model.read(folder / f"protonet-{seed}.model").record.seed for seed in (0, 3)] == [0, 3]
    alone = run(catalog, "--objective", "protonet", "--seed", "3", "--epochs", "1")
    assert alone.exit_code == 0, alone.output
    assert (folder / "some.model").read_bytes() == (folder / "protonet-3.model").read_bytes()


def test_a_finished_training_says_so_and_does_nothing(catalog: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run(catalog, "--objective", "protonet").exit_code == 0
    file = catalog.parent / "some.model"
    before = file.read_bytes(), file.stat().st_mtime_ns
    again = run(catalog, "--objective", "protonet")
    assert again.exit_code == 0, again.output
    assert "this training has already finished" in caplog.text
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    other = run(catalog, "--objective", "protonet", "--seed", "4")
    assert other.exit_code != 0
    assert "some.model belongs to another training: seed was 0, now 4; choose another output, or replace" in str(
        other.exception
    )
    assert file.read_bytes() == before[0]
    replaced = run(catalog, "--objective", "protonet", "--seed", "4", "--replace")
    assert replaced.exit_code == 0, replaced.output
    assert sp.Model.read(file).record.seed == 4


def test_the_same_command_continues_after_ctrl_c_as_it_says(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    updates, loss = iter(range(1000)), ProtoNet.loss

    def interrupted(*given: Any) -> Tensor:
        if next(updates) == 3:
            raise KeyboardInterrupt
        return loss(*given)

    monkeypatch.setattr(ProtoNet, "loss", interrupted)
    stopped = run(catalog, "--objective", "protonet")
    assert isinstance(stopped.exception, Stopped)  # which ends the command with one line
    assert "some.model.checkpoint; run the same command again" in str(stopped.exception)
    again = run(catalog, "--objective", "protonet")
    assert again.exit_code == 0, again.output
    assert next(updates) == 6  # of four updates, the two of the second epoch were made again


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--objective", "protnet"), "unknown objective 'protnet': did you mean 'protonet'"),
        (("--objective", "protonet", "--backbone", "resnet13"), "unknown backbone 'resnet13': did you mean 'resnet1"),
        (
            ("--objective", "protonet", "--set", "weight_decya=1"),
            "no setting 'weight_decya': did you mean 'weight_decay'",
        ),
        (("--objective", "protonet", "--set", "weight_decay"), "--set weight_decay: expected NAME=VALUE"),
        (("--objective", "protonet", "--set", "weight_decay=much"), "weight_decay: expected a number of at least 0"),
        (("--objective", "protonet", "--val-split", "train"), "split 'train' and split 'train' share 6 classes"),
        (("--objective", "protonet", "--split", "trian"), "unknown split 'trian': did you mean 'train'"),
        (("--objective", "protonet", "--shot", "20"), "a task needs 23 of each class"),
        (("--objective", "protonet", "--recipe", "nobody"), "unknown recipe 'nobody'"),
        (("--objective", "protonet", "--from", "no.model"), "model no.model does not exist"),
        (("--objective", "protonet", "--train-sampler", "fewstab"), "needs attributes"),
        (("--objective", "protonet", "--set", "augment=spec-augment"), "is for sounds, but the items are images"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_made(catalog: Path, arguments: tuple[str, ...], told: str) -> None:
    done = run(catalog, *arguments)
    assert isinstance(done.exception, sp.ShotproofError)  # which the command line prints, and exits with 2
    assert told in str(done.exception)
    assert sorted(path.name for path in catalog.parent.iterdir()) == ["catalog.parquet", "world"]


def test_without_validation_the_last_weights_are_kept(catalog: Path) -> None:
    done = run(catalog, "--objective", "protonet", "--val-split", "none")
    assert "epoch 2 of 2, loss" in done.stdout


def test_an_error_is_one_line_and_exit_status_2(catalog: Path) -> None:
    command = ["train", str(catalog), "-o", "some.model", "--objective", "protonet", "--val-split", "train"]
    done = subprocess.run([sys.executable, "-m", "shotproof", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: split 'train' and split 'train' share 6 classes")
    assert done.stderr.count("\n") == 1
