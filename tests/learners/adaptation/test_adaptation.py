"""What every registered adaptation promises."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.learners.adaptation.learned_start import LearnedStart
from shotproof.learners.method import make_method, methods
from shotproof.models.model import Model, weights_digest
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import objectives
from tests.models.objectives.untrained_models import model_of
from tests.small_networks import SIDE, WAY, pretrained_model, spelled, task_batch

NAMES = [name for name in methods.names() if issubclass(methods.get(name), Adaptation)]
ON_TRANSFORMERS = {"ett"}
every_adaptation = pytest.mark.parametrize("name", NAMES)
# One step is like the next: few show what all would, at rates at which they show.
FEWER: dict[str, dict[str, Any]] = {name: {} for name in NAMES}
FEWER |= {"lp-ft": {"head_epochs": 2, "rate": 0.05}, "transductive-finetune-network": {"rate": 5e-3}}


def made(name: str, length: int | None = 2, **options: Any) -> Adaptation:
    """An adaptation of so many steps, or epochs."""
    has = {option.name for option in methods.get(name).options()}
    adaptation = make_method({"name": name, "steps" if "steps" in has else "epochs": length, **FEWER[name], **options})
    assert isinstance(adaptation, Adaptation)
    return adaptation


def model_for(name: str) -> Model:
    """A model that an adaptation takes."""
    kind = methods.get(name)
    if name in ON_TRANSFORMERS:
        return pretrained_model()
    return settled_model(spelled(kind.objective) if issubclass(kind, LearnedStart) else "protonet")


@cache
def settled_model(objective: str) -> Model:
    """An untrained model of an objective, with batch norm's statistics those of some data."""
    model = model_of(objectives.make(objective), 4)
    net = model.network().train()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        net(task_batch().support)
    return Model.of(net, model.record)


def tasks_for(name: str) -> DecodedTasks:
    """Two tasks for the model of an adaptation."""
    return decoded(size=model_for(name).preprocessing.shape[1])


def decoded(tasks: int = 2, size: int = SIDE) -> DecodedTasks:
    batch = task_batch(tasks, size=size)
    return DecodedTasks(
        batch.support,
        batch.support_labels.clone(),
        batch.query,
        batch.query_labels.clone(),
        torch.arange(11, 11 + tasks),
        WAY,
    )


def part(tasks: DecodedTasks, rows: Any) -> DecodedTasks:
    sides = ("support", "labels", "query", "query_labels", "seeds")
    return replace(tasks, **{name: getattr(tasks, name)[rows] for name in sides})


def scores_of(adaptation: Adaptation, tasks: DecodedTasks) -> Tensor:
    model = model_for(adaptation.name)
    adaptation.require_model(model)
    with torch.no_grad():
        return adaptation.adapted_scores(model, model.network(), tasks)


@cache
def usual_run(name: str) -> tuple[Tensor, FewShotNetwork, DecodedTasks]:
    """The scores of the usual steps, and the network and the tasks as they are afterwards."""
    model, tasks = model_for(name), tasks_for(name)
    net = model.network()
    with torch.no_grad():
        return made(name).adapted_scores(model, net, tasks), net, tasks


def close(first: Tensor, second: Tensor) -> None:
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-3)


@every_adaptation
def test_the_weights_and_the_tasks_are_the_same_before_and_after(name: str) -> None:
    (scores, net, tasks), fresh = usual_run(name), tasks_for(name)
    assert scores.shape == (2, 3 * WAY, WAY)
    assert scores.isfinite().all()
    assert weights_digest(net.state_dict()) == weights_digest(model_for(name).weights)
    assert not any(module.training for module in net.modules())
    assert torch.equal(tasks.support, fresh.support)
    assert torch.equal(tasks.query, fresh.query)


@every_adaptation
def test_a_task_does_not_depend_on_its_batch_mates_or_its_place(name: str) -> None:
    close(scores_of(made(name), part(tasks_for(name), slice(1, 2))), usual_run(name)[0][1:])


@every_adaptation
def test_steps_change_the_scores_and_so_does_the_rate(name: str) -> None:
    tasks, some = tasks_for(name), usual_run(name)[0]
    assert not torch.allclose(scores_of(made(name, 0), tasks), some, rtol=1e-4, atol=1e-6)
    small = scores_of(made(name).with_rate(1e-7), tasks)
    assert not torch.allclose(small, some, rtol=1e-5, atol=1e-7)


@every_adaptation
def test_the_order_of_queries_permutes_the_scores_and_their_labels_have_no_say(name: str) -> None:
    """Of inductive methods, each query's scores do not depend on the others: some are left out."""
    adaptation, tasks = made(name), tasks_for(name)
    order = torch.randperm(3 * WAY, generator=torch.Generator().manual_seed(0))
    order = order[:4] if adaptation.family == "inductive" else order
    moved = replace(tasks, query=tasks.query[:, order], query_labels=(tasks.query_labels[:, order] + 1) % WAY)
    close(scores_of(adaptation, moved), usual_run(name)[0][:, order])
