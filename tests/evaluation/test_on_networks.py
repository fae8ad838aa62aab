"""Methods that adapt a network, evaluated end to end on a world of small pictures."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import torch

import shotproof as sp
from shotproof.catalog.changed_catalog import with_changes
from shotproof.changes.change import changes
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.options import option
from shotproof.learners.adaptation.finetune import Finetune
from shotproof.results.origin import Origin
from shotproof.tasks.changed import Variants
from tests.drawn_layers import draw_masked
from tests.small_networks import SMALL, write_world

COUNTS = ["task", "slot", "label", "n_query", "n_correct", "missed"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> sp.Catalog:
    return write_world(tmp_path_factory.mktemp("world"), classes=12, items=10, val=6)


@pytest.fixture(scope="module", autouse=True)
def own_cache(world: sp.Catalog) -> Any:
    with sp.runtime(cache=world.root / "cache", workers=1, progress=False, device="cpu"):
        yield


@pytest.fixture(scope="module")
def model(world: sp.Catalog, own_cache: Any) -> sp.Model:
    return sp.train(world, "anil", output=world.root / "anil.model", **SMALL)


def drawn(world: sp.Catalog, split: str = "val", **shape: Any) -> sp.TaskSet:
    return sp.sample(world, "random", split=split, **{"way": 3, "shot": 2, "query": 3, "tasks": 7, **shape})


def test_counts_are_those_of_the_models_own_head_on_its_features(world: sp.Catalog, model: sp.Model) -> None:
    tasks, file = drawn(world), world.root / "anil.model"
    on_items = sp.evaluate(tasks, catalog=world, model=file, methods="anil")
    on_features = sp.evaluate(tasks, sp.encode(world.in_split("val"), f"model:{file}"), f"model:{file}")
    assert on_items.table.select(COUNTS).equals(on_features.table.select(COUNTS))
    assert Origin.of(on_items).encoder == model.name
    assert on_items.record.source("model") == model.digest
    assert on_items.record.source("catalog") == world.digest


def test_neither_batches_nor_the_other_tasks_change_a_count(world: sp.Catalog, model: sp.Model) -> None:
    tasks, methods = drawn(world, tasks=5), ["anil", "anil(protocol='published')"]
    whole = sp.evaluate(tasks, catalog=world, model=model, methods=methods)
    for chunk in (1, 3):
        parts = sp.evaluate(tasks, catalog=world, model=model, methods=methods, chunk=chunk)
        assert parts.table.equals(whole.table)
    first = sp.evaluate(tasks.first(2), catalog=world, model=model, methods="anil")
    assert first.table.select(COUNTS).equals(whole.table.slice(0, 6).select(COUNTS))


def test_a_background_may_be_of_an_item_that_no_task_has(model: sp.Model, tmp_path: Path) -> None:
    masked = draw_masked(tmp_path, classes=3, items=4)
    tasks = sp.sample(masked, "random", way=3, shot=1, query=1, tasks=1)
    changed = sp.sample(masked, "changed(change='mixed-same')", like=tasks)
    variants = Variants.of(changed, masked)
    both = with_changes(masked, [(variants.items, variants.changes)])
    shown = {changes.make(spelling).plate for spelling in changed.changes("query").to_pylist()}
    assert shown - set(pc.list_flatten(tasks.table["query"]).to_pylist())
    results = sp.evaluate(changed, catalog=both, model=model, methods="anil")
    assert sum(results.table["n_query"].to_pylist()) == 3


def test_what_many_tasks_will_take_is_told_by_the_first(
    world: sp.Catalog, model: sp.Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shotproof.evaluation.on_networks.WORTH_REPORTING", 0.0)
    with caplog.at_level(logging.INFO, "shotproof"):
        sp.evaluate(drawn(world, tasks=5), catalog=world, model=model, methods=["anil", "anil(rate=0.1)"])
        sp.evaluate(drawn(world, tasks=1), catalog=world, model=model, methods="anil")
    assert len(caplog.messages) == 2
    for method, message in zip(["anil", "anil(rate=0.1)"], caplog.messages, strict=True):
        said = rf"method '{re.escape(method)}': about \d+ seconds on this CPU for 5 tasks"
        assert re.fullmatch(said, message)


def test_tasks_of_seen_classes_are_refused(world: sp.Catalog, model: sp.Model) -> None:
    tasks = drawn(world, split="train")
    with pytest.raises(InputError, match=r"model 'anil on .*' was trained on \d classes of these tasks"):
        sp.evaluate(tasks, catalog=world, model=model, methods="anil")
    assert sp.evaluate(tasks, catalog=world, model=model, methods="anil", allow_seen=True).methods == ["anil"]
    with pytest.raises(InputError, match="was trained on"):
        sp.evaluate(drawn(world), catalog=world, model=model, methods="anil", tune_on=tasks)


def test_what_is_missing_or_does_not_go_together_is_told(world: sp.Catalog, model: sp.Model) -> None:
    tasks, features = drawn(world), sp.encode(world, "pixels(size=4)")
    with pytest.raises(InputError, match=r"method 'anil' .*: give a model"):
        sp.evaluate(tasks, catalog=world, methods="anil")
    with pytest.raises(InputError, match=r"method 'anil' .*: give the catalog"):
        sp.evaluate(tasks, features, methods="anil", model=model)
    with pytest.raises(InputError, match=r"method 'ncc' .* encoder, model:FILE"):
        sp.evaluate(tasks, features, methods="ncc", model=model)
    with pytest.raises(InputError, match="'anil' needs a model and 'ncc' needs features"):
        sp.evaluate(tasks, catalog=world, methods=["anil", "ncc"], model=model)
    with pytest.raises(Mismatch, match="needs a model of objective 'boil', found one of 'anil'"):
        sp.evaluate(tasks, catalog=world, methods="boil", model=model)
    with pytest.raises(InputError, match="3 classes, but the tasks have 2"):
        sp.evaluate(drawn(world, way=2), catalog=world, methods="anil", model=model)
    with pytest.raises(InputError, match=r"rates: .*validation tasks"):
        sp.evaluate(tasks, catalog=world, methods="anil", model=model, rates=[0.1])
    with pytest.raises(InputError, match=r"model missing\.model does not exist"):
        sp.evaluate(tasks, catalog=world, methods="anil", model="missing.model")


def test_the_learning_rate_is_the_best_on_validation_tasks(world: sp.Catalog, model: sp.Model) -> None:
    names = sorted(set(world.in_split("val").table.column("label").to_pylist()))
    labels = np.array(world.table.column("label").to_pylist())
    parts = [
        sp.Catalog(world.table.filter(np.isin(labels, some)), world.root, world.record)
        for some in (names[:3], names[3:])
    ]
    val, test = (sp.sample(part, "random", split="val", way=3, shot=2, query=5, tasks=10) for part in parts)
    rates = (1e-6, 0.1, 3.5)
    tuned = sp.evaluate(test, catalog=world, model=model, methods="anil", tune_on=val, rates=rates)
    on_val = {rate: sp.evaluate(val, catalog=world, model=model, methods=f"anil(rate={rate})") for rate in rates}
    accuracy = {rate: sum(one.table.column("n_correct").to_pylist()) for rate, one in on_val.items()}
    best = max(sorted(rates), key=lambda rate: accuracy[rate])
    assert len(set(accuracy.values())) > 1
    assert tuned.methods == [f"anil(rate={best})"]
    assert tuned.record.source("tune_on") == val.digest
    direct = sp.evaluate(test, catalog=world, model=model, methods=tuned.methods)
    assert tuned.table.equals(direct.table)
    with pytest.raises(InputError, match=r"the validation tasks share \d+ items with the tasks, e.g. '"):
        sp.evaluate(test, catalog=world, model=model, methods="anil", tune_on=test.first(2))


@dataclass(frozen=True)
class Hungry(Finetune):
    """Fine-tuning that needs more memory than there is for more than some tasks at a time."""

    most: int = option(2, "tasks that fit", least=0)

    def adapted_scores(self, model: Any, net: Any, tasks: Any) -> torch.Tensor:
        if len(tasks) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return super().adapted_scores(model, net, tasks)


def test_batches_that_do_not_fit_into_memory_are_halved(world: sp.Catalog, model: sp.Model) -> None:
    tasks = drawn(world)
    fitting = sp.evaluate(tasks, catalog=world, model=model, methods=Finetune(steps=1))
    halved = sp.evaluate(tasks, catalog=world, model=model, methods=Hungry(steps=1))
    assert halved.table.select(COUNTS).equals(fitting.table.select(COUNTS))
    with pytest.raises(InputError, match=r"one task .*memory of cpu: use another device"):
        sp.evaluate(tasks, catalog=world, model=model, methods=Hungry(most=0))
