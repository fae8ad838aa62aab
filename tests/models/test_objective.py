"""What every registered objective promises."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from shotproof.core.plain_values import plain
from shotproof.core.records import Maker, ModelRecord
from shotproof.models.backbone import backbones
from shotproof.models.model import Model, weights_digest
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import Objective, objectives
from shotproof.models.preprocessing import ImagePreprocessing
from shotproof.training.settings import TrainingSettings
from tests.small_networks import BACKBONE, CLASSES, SIDE, WAY, batch_for, loss_of, network_of, spelled, task_batch

every_objective = pytest.mark.parametrize("name", objectives.names())


def made(name: str) -> Objective[Any]:
    return objectives.make(spelled(name))


def scores_of(objective: Objective[Any], net: FewShotNetwork, order: dict[str, Any] | None = None) -> torch.Tensor:
    """The scores of a network in evaluation mode on drawn tasks, whose rows may be reordered."""
    batch, order = task_batch(), order or {}
    net.eval()
    support, labels, query = batch.support, batch.support_labels, batch.query
    with torch.no_grad():
        seen = [net(side, objective.needs) for side in (support, query)]
        if (rows := order.get("support")) is not None:
            seen[0], labels = seen[0][:, rows], labels[:, rows]
        if (rows := order.get("query")) is not None:
            seen[1] = seen[1][:, rows]
        if (names := order.get("classes")) is not None:
            labels = names[labels]
        if (tasks := order.get("tasks")) is not None:
            seen, labels = [side[tasks] for side in seen], labels[tasks]
        return objective.scores(net, seen[0], labels, seen[1], WAY)


@every_objective
def test_its_loss_is_a_number_whose_gradients_reach_what_is_trained(name: str) -> None:
    objective = made(name)
    net = network_of(objective).train()
    loss = loss_of(objective, net, batch_for(objective))
    assert loss.shape == ()
    assert torch.isfinite(loss)
    loss.backward()
    trained = {id(each) for group, _ in objective.parameter_groups(net) for each in group}
    without = [
        key
        for key, each in net.named_parameters()
        if id(each) in trained and (each.grad is None or not each.grad.any())
    ]
    # Biases before batch norm have no effect.
    assert [key for key in without if not key.startswith("backbone.blocks") or not key.endswith("0.bias")] == []


@every_objective
def test_the_same_batch_and_seed_give_the_same_loss(name: str) -> None:
    objective = made(name)
    net = network_of(objective).train()
    losses = [loss_of(objective, copy.deepcopy(net), batch_for(objective)).item() for _ in range(2)]
    assert losses[0] == losses[1]


@every_objective
def test_it_learns_a_batch(name: str) -> None:
    objective = made(name)
    net = network_of(objective).train()
    groups = [{"params": list(each), "lr": 2e-3 * factor} for each, factor in objective.parameter_groups(net)]
    optimizer = torch.optim.Adam(groups)
    batch, losses = batch_for(objective), []
    for _ in range(22):
        loss = loss_of(objective, net, batch)
        optimizer.zero_grad()
        loss.backward()
        if clip := objective.settings.get("clip"):
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        objective.after_update(net)
        losses.append(loss.item())
        if losses[-1] < 0.9 * losses[0]:
            return
    pytest.fail(f"the loss goes from {losses[0]:.3f} to {min(losses):.3f} at best")


@every_objective
def test_its_scores_are_of_each_task_alone_and_leave_the_network_as_it_is(name: str) -> None:
    objective = made(name)
    net = network_of(objective)
    before = weights_digest(net.state_dict())
    scores = scores_of(objective, net)
    assert scores.shape == (2, 3 * WAY, WAY)
    assert torch.isfinite(scores).all()
    alone = torch.cat([scores_of(objective, net, {"tasks": slice(task, task + 1)}) for task in range(2)])
    torch.testing.assert_close(alone, scores, rtol=1e-4, atol=1e-4)
    assert weights_digest(net.state_dict()) == before


@every_objective
def test_the_order_of_rows_has_no_say(name: str) -> None:
    objective = made(name)
    net = network_of(objective)
    scores, draw = scores_of(objective, net), torch.Generator().manual_seed(3)
    rows = torch.randperm(2 * WAY, generator=draw)
    torch.testing.assert_close(scores_of(objective, net, {"support": rows}), scores, rtol=1e-3, atol=1e-3)
    rows = torch.randperm(3 * WAY, generator=draw)
    torch.testing.assert_close(scores_of(objective, net, {"query": rows}), scores[:, rows], rtol=1e-3, atol=1e-3)
    if objective.family == "inductive":
        alone = scores_of(objective, net, {"query": slice(0, 1)})
        torch.testing.assert_close(alone, scores[:, :1], rtol=1e-3, atol=1e-3)
    if objective.symmetric:
        names = torch.tensor([1, 2, 0])
        renamed = scores_of(objective, net, {"classes": names})
        torch.testing.assert_close(renamed[..., names], scores, rtol=1e-3, atol=1e-3)


@every_objective
def test_what_it_has_learned_is_in_the_file(name: str, tmp_path: Path) -> None:
    objective = made(name)
    net = network_of(objective, seed=5)
    record = ModelRecord(
        backbone=Maker.of(backbones.make(BACKBONE)),
        objective=Maker.of(objective),
        preprocessing=plain(ImagePreprocessing(size=SIDE, stored=SIDE).to_meta()),
        settings={"way": WAY},
        classes=tuple(f"class{number}" for number in range(CLASSES)),
    )
    Model.of(net, record).write(tmp_path / "some.model")
    again = Model.read(tmp_path / "some.model")
    torch.testing.assert_close(scores_of(objective, again.network()), scores_of(objective, net), rtol=0, atol=0)


@every_objective
def test_its_own_settings_are_settings(name: str) -> None:
    objective = made(name)
    settings = TrainingSettings().with_values(objective.settings, name)
    assert settings.parameters().items() >= dict(objective.settings).items()
