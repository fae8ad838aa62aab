"""Training end to end on a world of a few small pictures."""

from __future__ import annotations

import json
import logging
import re
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
import typer
from typer.testing import CliRunner

import shotproof as sp
from shotproof.cli.data.train import train as train_command
from shotproof.core.errors import InputError, InsufficientData, Interrupted, Mismatch, TrainingFailed, UnknownName
from shotproof.core.runtime import progress as costs
from shotproof.models.model import Model, weights_digest
from shotproof.models.objective import objectives
from shotproof.models.objectives.prototypes import ProtoNet
from shotproof.training.training_recipes import RECIPES, Recipe
from tests.small_networks import BACKBONE, SIDE, SMALL, spelled, write_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> sp.Catalog:
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, world: sp.Catalog) -> Any:
    with sp.runtime(cache=world.root / "cache", workers=1, progress=False, device="cpu"):
        yield


@pytest.mark.parametrize("name", objectives.names())
def test_every_objective_trains_to_a_model_that_encodes_and_scores(
    name: str, world: sp.Catalog, tmp_path: Path
) -> None:
    file = tmp_path / "some.model"
    model = sp.train(world, spelled(name), output=file, **SMALL)
    assert sp.read(file).digest == model.digest
    assert [row["epoch"] for row in model.record.curve] == [1, 2]
    assert all(0 <= row["accuracy"] <= 100 and np.isfinite(row["loss"]) for row in model.record.curve)
    assert len(model.record.classes) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["some.model", "some.model.jsonl"]
    tasks = sp.sample(world, "random", split="val", way=3, shot=2, query=3, tasks=4)
    objective = model.objective
    if objective.needs != "items":
        features = sp.encode(world.in_split("val"), f"model:{file}(maps={objective.needs == 'maps'})")
        assert features.record.trained_on == model.record.classes
        assert sp.evaluate(tasks, features, f"model:{file}").methods == [f"model:{file}"]


def test_the_same_seed_gives_the_same_weights_and_another_one_others(world: sp.Catalog) -> None:
    digests = [sp.train(world, "protonet", seed=seed, **SMALL).digest for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(("name", "optimizer"), [("protonet", "adam"), ("baseline", "sgd")])
def test_an_interrupted_training_ends_with_the_same_weights(
    name: str, optimizer: str, world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**SMALL, "epochs": 4, "optimizer": optimizer, "schedule": "cosine"}
    settings["backbone"] = "resnet12(width='64', warm_up=4, block_size=2)"
    whole = sp.train(world, name, **settings)
    file, kind = tmp_path / "some.model", objectives.get(name)
    calls, loss = iter(range(1000)), kind.loss

    def interrupted(self: Any, *given: Any) -> torch.Tensor:
        if next(calls) == 5:
            raise KeyboardInterrupt
        return loss(self, *given)

    monkeypatch.setattr(kind, "loss", interrupted)
    with pytest.raises(Interrupted, match=r"finished epochs are kept in .*some\.model\.checkpoint; .*same command"):
        sp.train(world, name, output=file, **settings)
    monkeypatch.undo()
    assert not file.exists()
    with pytest.raises(Mismatch, match=r"another training: seed was 0, now 7, epochs was 4, now 5; .*--replace"):
        sp.train(world, name, output=file, seed=7, **{**settings, "epochs": 5})
    resumed = sp.train(world, name, output=file, **settings)
    assert weights_digest(resumed.weights) == weights_digest(whole.weights)
    assert resumed.record.curve == whole.record.curve
    log = file.with_name("some.model.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in log] == [1, 2, 3, 4]
    assert not file.with_name("some.model.checkpoint").exists()


def test_interrupted_in_the_first_epoch_it_says_that_nothing_is_kept_and_begins_anew(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> torch.Tensor:
        raise KeyboardInterrupt

    file = tmp_path / "some.model"
    monkeypatch.setattr(ProtoNet, "loss", interrupted)
    with pytest.raises(Interrupted, match=r"before the first epoch of .*some\.model.* starts over"):
        sp.train(world, "protonet", output=file, **SMALL)
    monkeypatch.undo()
    assert sp.train(world, "protonet", output=file, **SMALL).digest == sp.train(world, "protonet", **SMALL).digest


def test_nobody_waits_for_an_update_under_way_when_the_user_breaks_off(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, updates, loss, waiting = threading.Event(), [], ProtoNet.loss, threading.get_ident()

    def long(*given: Any) -> torch.Tensor:
        updates.append("begun")
        signal.pthread_kill(waiting, signal.SIGINT)  # as a terminal does
        free.wait(10)
        updates.append("ended")
        return loss(*given)

    monkeypatch.setattr(ProtoNet, "loss", long)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs in the background
    try:
        with pytest.raises(Interrupted):
            sp.train(world, "protonet", output=tmp_path / "some.model", **SMALL)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert updates == ["begun"]
    free.set()


def test_another_training_is_replaced_when_asked_and_an_interruption_of_that_goes_on(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, calls, loss = tmp_path / "some.model", iter(range(1000)), ProtoNet.loss
    sp.train(world, "protonet", output=file, seed=1, **SMALL)
    file.with_name("some.model.checkpoint").write_bytes(b"cut off")
    with pytest.raises(InputError, match=r"some\.model\.checkpoint cannot be read.*--replace"):
        sp.train(world, "protonet", output=file, **SMALL)

    def interrupted(*given: Any) -> torch.Tensor:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return loss(*given)

    monkeypatch.setattr(ProtoNet, "loss", interrupted)
    with pytest.raises(Interrupted, match="finished epochs are kept"):
        sp.train(world, "protonet", output=file, replace=True, **SMALL)
    losses = iter(range(1000))
    monkeypatch.setattr(ProtoNet, "loss", lambda *given: (next(losses), loss(*given))[1])
    model = sp.train(world, "protonet", output=file, replace=True, **SMALL)
    assert next(losses) == 2  # the second epoch alone
    assert model.digest == sp.Model.read(file).digest == sp.train(world, "protonet", **SMALL).digest


def test_a_finished_training_by_other_features_is_another_one(world: sp.Catalog, tmp_path: Path) -> None:
    given = {"output": tmp_path / "some.model", "train_sampler": "hardest", **SMALL}
    sp.train(world, "protonet", features=sp.encode(world, "pixels(size=4)"), **given)
    with pytest.raises(Mismatch, match=r"some\.model belongs to another training: features was '"):
        sp.train(world, "protonet", features=sp.encode(world, "pixels(size=2)"), **given)


def test_a_loss_that_is_no_number_ends_training_and_keeps_the_last_epoch(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, loss, file = iter(range(1000)), ProtoNet.loss, tmp_path / "some.model"
    monkeypatch.setattr(ProtoNet, "loss", lambda *given: loss(*given) * (float("nan") if next(calls) == 3 else 1))
    with pytest.raises(TrainingFailed, match=r"the loss .*update 2 of epoch 2.*after epoch 1 is kept"):
        sp.train(world, "protonet", output=file, **SMALL)
    monkeypatch.undo()
    resumed = sp.train(world, "protonet", output=file, **SMALL)
    assert resumed.digest == sp.train(world, "protonet", **SMALL).digest


def test_too_little_memory_ends_training_and_keeps_the_last_epoch(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, loss = iter(range(1000)), ProtoNet.loss

    def too_large(*given: Any) -> torch.Tensor:
        if next(calls) == 2:
            raise torch.OutOfMemoryError("out of memory")
        return loss(*given)

    monkeypatch.setattr(ProtoNet, "loss", too_large)
    with pytest.raises(TrainingFailed, match="out of memory in epoch 2: lower tasks_per_update or batch"):
        sp.train(world, "protonet", output=tmp_path / "some.model", **SMALL)
    assert (tmp_path / "some.model.checkpoint").is_file()


def test_what_cannot_be_trained_is_refused_before_it_starts(world: sp.Catalog) -> None:
    with pytest.raises(InputError, match=r"split 'train' and split 'train' share 6 classes, e.g. '"):
        sp.train(world, "protonet", val_split="train", **SMALL)
    with pytest.raises(InsufficientData, match="has 8 items, a task needs 11 of each class"):
        sp.train(world, "protonet", **{**SMALL, "query": 9})
    with pytest.raises(InsufficientData, match=r"split 'val' \(.*--val-split none.* has 4"):
        sp.train(world, "protonet", **{**SMALL, "way": 5})
    with pytest.raises(InsufficientData, match=r"split 'train' \(for training\): 7 ways need .* the data has 6"):
        sp.train(world, "protonet", **{**SMALL, "way": 7})
    with pytest.raises(UnknownName, match=r"unknown split 'valid'.*did you mean 'val'"):
        sp.train(world, "protonet", val_split="valid", **SMALL)
    with pytest.raises(InputError, match=r"training has no setting 'epoch'.*did you mean 'epochs'"):
        sp.train(world, "protonet", **SMALL, epoch=2)
    with pytest.raises(UnknownName, match=r"unknown recipe 'fewstab-cup'.*did you mean 'fewstab-cub'"):
        sp.train(world, "protonet", recipe="fewstab-cup", **SMALL)
    with pytest.raises(InputError, match="augmentation 'spec-augment' is for sounds, but the items are images"):
        sp.train(world, "protonet", augment="spec-augment", **SMALL)


def test_what_a_long_training_will_take_is_told_while_it_runs(
    world: sp.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(costs, "TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(costs, "WORTH_REPORTING", 0.0)
    with caplog.at_level(logging.INFO, "shotproof"):
        sp.train(world, "protonet", output=tmp_path / "some.model", **SMALL)
    (told,) = caplog.messages
    assert re.fullmatch(
        r"training protonet: about \d+ seconds on this CPU for 2 epochs; Ctrl-C keeps finished epochs", told
    )


def test_a_model_starts_from_another_one_and_has_seen_its_classes_too(world: sp.Catalog) -> None:
    first = sp.train(world, "baseline", **SMALL)
    settings = {**SMALL, "lr": 1e-12, "weight_decay": 0.0, "epochs": 1}
    assert settings.pop("backbone")
    second = sp.train(world, "protonet", split="val", val_split="train", from_model=first, **settings)
    kept = [name for name in first.weights if name.endswith("weight") and name.startswith("backbone")]
    for name in kept:
        torch.testing.assert_close(second.weights[name], first.weights[name], rtol=0, atol=1e-6)
    assert set(second.record.seen) == set(pc.unique(world.table.column("label")).to_pylist())
    assert second.record.source("model") == first.digest
    with pytest.raises(
        InputError, match=r"cannot start from model \'baseline.*: its backbone conv64f.* different network"
    ):
        sp.train(world, "protonet", from_model=first, **{**SMALL, "backbone": "resnet10"})


def test_training_tasks_may_be_of_any_sampler(world: sp.Catalog) -> None:
    features = sp.encode(world, "pixels(size=4)")
    random = sp.train(world, "protonet", **SMALL)
    hardest = sp.train(world, "protonet", train_sampler="hardest", features=features, **SMALL)
    assert random.digest != hardest.digest
    with pytest.raises(InputError, match="sampler 'hardest' needs features"):
        sp.train(world, "protonet", train_sampler="hardest", **SMALL)
    with pytest.raises(InputError, match="tasks of one shape"):
        sp.train(world, "protonet", train_sampler="random(query_dirichlet=1)", **SMALL)


def test_tasks_of_classes_that_a_model_has_seen_are_refused(world: sp.Catalog, tmp_path: Path) -> None:
    file = tmp_path / "some.model"
    sp.train(world, "protonet", output=file, **SMALL)
    features = sp.encode(world, f"model:{file}")
    tasks = sp.sample(world, "random", split="train", way=3, shot=2, query=3, tasks=30)
    with pytest.raises(InputError, match=r"was trained on 6 classes of these tasks, e.g. '.*allow_seen"):
        sp.evaluate(tasks, features, "ncc")
    with pytest.raises(InputError, match="was trained on 6 classes"):
        sp.evaluate(tasks, sp.transform(features, "l2"), "ncc")
    assert len(sp.evaluate(tasks, features, "ncc", allow_seen=True).methods) == 1


def test_a_models_head_on_other_features_is_refused(world: sp.Catalog, tmp_path: Path) -> None:
    file = tmp_path / "some.model"
    sp.train(world, "protonet", output=file, **SMALL)
    tasks = sp.sample(world, "random", split="val", way=3, shot=2, query=3, tasks=4)
    own, other = sp.encode(world, f"model:{file}"), sp.encode(world, "pixels(size=4)")
    assert np.array_equal(
        sp.evaluate(tasks, own, f"model:{file}").table.column("n_correct"),
        sp.evaluate(tasks, own, "ncc").table.column("n_correct"),
    )
    for features in (other, sp.transform(own, "l2")):
        with pytest.raises(Mismatch, match="needs the features of this model"):
            sp.evaluate(tasks, features, f"model:{file}")


def test_a_trained_network_is_better_than_an_untrained_one(tmp_path: Path) -> None:
    world = write_world(tmp_path / "world", classes=14, items=20)
    settings = {**SMALL, "epochs": 4, "tasks": 30, "lr": 2e-3}
    curve = sp.train(world, "protonet", augment="none", **settings).record.curve
    assert curve[-1]["loss"] < curve[0]["loss"] / 2


def test_a_compiled_backbone_is_the_one_that_is_trained(world: sp.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def stand_in(function: Any, **options: Any) -> Any:  # compiling takes longer than all other tests
        compiled.append(function.__name__)
        return function

    monkeypatch.setattr(torch, "compile", stand_in)
    model = sp.train(world, "protonet", compile=True, **SMALL)
    assert compiled == ["vectors"]
    plain = sp.train(world, "protonet", **SMALL)
    assert weights_digest(model.weights) == weights_digest(plain.weights)


TINY = {**SMALL, "epochs": 1}
TWO_STEPS = Recipe(
    about="a classifier, then tasks",
    steps=(("rfs", {"lr": 0.01, "batch": 16}), ("protonet(temperature=2)", {"lr": 1e-3, "tasks": 4})),
    backbone=BACKBONE,
)


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
    with pytest.raises(Mismatch, match=r"some\.stage1\.model.* another training: seed was 0, now 5"):
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
    with pytest.raises(Mismatch, match=r"some\.model belongs to another training: objective was 'protonet', now"):
        sp.train(world, recipe="two-steps", output=file, **settings)


def test_one_command_trains_both_steps(world: sp.Catalog, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(train_command)
    catalog, file = tmp_path / "catalog.parquet", tmp_path / "some.model"
    world.write(catalog)
    shape = [f"--{name}={value}" for name, value in {"way": 3, "shot": 2, "query": 3, "epochs": 1}.items()]
    small = ["--set", f"size={SIDE}", "--set", "val_tasks=5", "--set", "batch=16"]
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
    with pytest.raises(InputError, match=r"no objective given: .* recipe .*: 'shotproof'"):
        sp.train(world, **TINY)
    with pytest.raises(InputError, match="no objective given"):
        sp.train(world, recipe="fewstab-cub", **TINY)
    with pytest.raises(
        InputError, match=r"'two-steps' has its own objectives.*rfs, then protonet.*leave out .*'protonet'"
    ):
        sp.train(world, ProtoNet(), recipe="two-steps", **TINY)
