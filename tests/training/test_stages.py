"""Trainings of several stages: generations, and recipes with objectives of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

import shotproof as sp
from shotproof.cli.data.train import train as train_command
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.models.model import Model, weights_digest
from shotproof.models.objective import objectives
from shotproof.models.objectives.protonet import ProtoNet
from shotproof.training.recipes import RECIPES, Recipe
from tests.small_networks import BACKBONE, SIDE, SMALL, write_world

TINY = {**SMALL, "epochs": 1}
TWO_STEPS = Recipe(
    about="a classifier, then tasks",
    steps=(("rfs", {"lr": 0.01, "batch": 16}), ("protonet(temperature=2)", {"lr": 1e-3, "tasks": 4})),
    backbone=BACKBONE,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> sp.Catalog:
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def two_steps(world: sp.Catalog, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(RECIPES, "two-steps", TWO_STEPS)
    with sp.runtime(cache=world.root / "cache", workers=1, progress=False, device="cpu"):
        yield


def without_backbone(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "backbone"}


def test_a_recipe_of_two_steps_is_two_trainings(world: sp.Catalog, tmp_path: Path) -> None:
    settings, file = without_backbone(TINY), tmp_path / "some.model"
    whole = sp.train(world, recipe="two-steps", output=file, **settings)
    first = sp.train(world, "rfs", backbone=BACKBONE, lr=0.01, **settings)
    second = sp.train(world, "protonet(temperature=2)", from_model=first, lr=1e-3, **settings)
    assert whole.digest == second.digest
    assert whole.record.source("model") == first.digest == Model.read(tmp_path / "some.stage1.model").digest
    assert sp.read(file).digest == whole.digest
    names = ["some.model", "some.model.jsonl", "some.stage1.model", "some.stage1.model.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize("stage", [1, 2])
def test_an_interrupted_training_of_two_stages_goes_on(
    stage: int, world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = without_backbone({**SMALL, "epochs": 2})
    whole = sp.train(world, recipe="two-steps", **settings)
    file, kind = tmp_path / "some.model", objectives.get("rfs" if stage == 1 else "protonet")
    updates, loss = iter(range(1000)), kind.loss

    def interrupted(self: Any, *given: Any) -> torch.Tensor:
        if next(updates) == 3:
            raise KeyboardInterrupt
        return loss(self, *given)

    monkeypatch.setattr(kind, "loss", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sp.train(world, recipe="two-steps", output=file, **settings)
    monkeypatch.setattr(kind, "loss", loss)
    with pytest.raises(Mismatch, match=r"some\.stage1\.model.* is of another training: seed was 0 and is 5"):
        sp.train(world, recipe="two-steps", output=file, seed=5, **settings)
    resumed = sp.train(world, recipe="two-steps", output=file, **settings)
    assert weights_digest(resumed.weights) == weights_digest(whole.weights)
    assert resumed.record == whole.record


def test_the_output_of_another_training_is_refused_before_the_first_stage(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, settings = tmp_path / "some.model", without_backbone(TINY)
    sp.train(world, "protonet", backbone=BACKBONE, output=file, **settings)
    monkeypatch.setattr(objectives.get("rfs"), "loss", lambda *_: pytest.fail("the first stage has begun"))
    with pytest.raises(Mismatch, match=r"some\.model is of another training: objective was 'protonet' and is"):
        sp.train(world, recipe="two-steps", output=file, **settings)


def test_one_command_trains_both_steps(world: sp.Catalog, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(train_command)
    catalog, file = tmp_path / "catalog.parquet", tmp_path / "some.model"
    world.write(catalog)
    shape = [f"--{name}={value}" for name, value in {"way": 3, "shot": 2, "query": 3, "epochs": 1, "batch": 16}.items()]
    small = ["--set", f"size={SIDE}", "--set", "val_tasks=5"]
    told = CliRunner().invoke(app, [str(catalog), "--recipe", "two-steps", "-o", str(file), *shape, *small])
    assert told.exit_code == 0, told.output
    assert "some.model: protonet(temperature=2) on conv64f" in told.output
    assert str(Model.read(tmp_path / "some.stage1.model").record.objective) == "rfs"


def test_what_a_later_stage_cannot_train_is_told_before_the_first(
    world: sp.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (TWO_STEPS.steps[0], ("protonet", {"query": 9}))
    monkeypatch.setitem(RECIPES, "two-steps", Recipe(about="too many queries", steps=steps, backbone=BACKBONE))
    monkeypatch.setattr(objectives.get("rfs"), "loss", lambda *_: pytest.fail("the first stage has begun"))
    settings = {name: value for name, value in TINY.items() if name not in ("query", "backbone")}
    with pytest.raises(InsufficientData, match="has 8 items, a task needs"):
        sp.train(world, recipe="two-steps", **settings)


def test_generations_learn_from_the_one_before(world: sp.Catalog, tmp_path: Path) -> None:
    file = tmp_path / "some.model"
    model = sp.train(world, "rfs(generations=2)", output=file, **TINY)
    first = sp.train(world, "rfs", **TINY)
    assert str(model.record.objective) == "rfs(distill=True)"
    assert model.record.source("model") == first.digest
    assert model.digest == sp.train(world, "rfs(distill=True)", from_model=first, **TINY).digest
    assert not [name for name in model.weights if "teacher" in name]
    # The model needs its teacher no more.
    (tmp_path / "some.stage1.model").unlink()
    assert sp.read(file).network().head.weight.shape == (6, 64)


def test_a_network_that_follows_is_in_checkpoints_and_not_in_models(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, file, kind = {**SMALL, "epochs": 2}, tmp_path / "some.model", objectives.get("moco")
    whole = sp.train(world, "moco(queue=8)", **settings)
    assert not [name for name in whole.weights if "momentum" in name]
    updates, loss = iter(range(1000)), kind.loss

    def interrupted(self: Any, *given: Any) -> torch.Tensor:
        if next(updates) == 4:
            raise KeyboardInterrupt
        return loss(self, *given)

    monkeypatch.setattr(kind, "loss", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sp.train(world, "moco(queue=8)", output=file, **settings)
    monkeypatch.setattr(kind, "loss", loss)
    assert sp.train(world, "moco(queue=8)", output=file, **settings).digest == whole.digest


def test_a_training_without_an_objective_is_refused(world: sp.Catalog) -> None:
    with pytest.raises(InputError, match="name an objective, or a recipe that has its own: 'shotproof'"):
        sp.train(world, **TINY)
    with pytest.raises(InputError, match="name an objective"):
        sp.train(world, recipe="fewstab-cub", **TINY)
    with pytest.raises(
        InputError, match=r"'two-steps' has its own objectives, rfs, then protonet.*leave .*'protonet' out"
    ):
        sp.train(world, ProtoNet(), recipe="two-steps", **TINY)
