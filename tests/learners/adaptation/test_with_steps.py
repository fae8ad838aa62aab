"""Adaptations of all tasks at once against plain PyTorch, task by task on copies of the network."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import Mismatch
from shotproof.learners.adaptation.descent import augment_support, frozen_scores
from shotproof.learners.adaptation.finetune import batch_norm_names
from shotproof.models.model import weights_digest
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import objectives
from tests.learners.adaptation.test_adaptation import close, decoded, made, model_for, part, scores_of, tasks_for
from tests.models.objectives.untrained_models import model_of
from tests.small_networks import pretrained_model

STEPS = 3


def cosines(support: Tensor, target: Tensor, query: Tensor) -> Tensor:
    means = (target.T @ support) / target.sum(0)[:, None]
    return 10 * functional.cosine_similarity(query[:, None], means[None], dim=2)


def tuned_body(name: str) -> tuple[FewShotNetwork, list[nn.Parameter]]:
    net = copy.deepcopy(model_for(name).network())
    return net, [*net.backbone.parameters()]


def test_finetune_is_adam_on_the_backbone_of_each_task() -> None:
    tasks, expected = decoded(), []
    for task in range(2):
        net, body = tuned_body("finetune")
        optimizer, target = torch.optim.Adam(body, 1e-4), tasks.target[task]
        for step in range(STEPS):
            items = augment_support(tasks.support, tasks.seeds, step, 0.9)[task]
            logits = cosines(net(tasks.support[task]), target, net(items))
            optimizer.zero_grad()
            functional.cross_entropy(logits, tasks.labels[task]).backward()
            optimizer.step()
        expected.append(cosines(net(tasks.support[task]), target, net(tasks.query[task])).detach())
    close(scores_of(made("finetune", STEPS), tasks), torch.stack(expected))


@pytest.mark.parametrize("rate", [0.02, 0.0])
def test_finetune_head_is_sgd_on_backbone_and_head_of_each_task(rate: float) -> None:
    tasks, expected = decoded(), []
    for task in range(2):
        net, body = tuned_body("finetune-head")
        head = nn.Linear(64, 3)
        nn.init.ones_(head.weight)
        nn.init.zeros_(head.bias)
        groups: list[dict[str, Any]] = [{"params": body, "lr": rate}, {"params": head.parameters(), "lr": 0.1}]
        optimizer = torch.optim.SGD(groups, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
        for _ in range(STEPS):
            optimizer.zero_grad()
            logits = head(functional.normalize(net(tasks.support[task]), dim=1))
            functional.cross_entropy(logits, tasks.labels[task]).backward()
            optimizer.step()
            schedule.step()
        expected.append(head(functional.normalize(net(tasks.query[task]), dim=1)).detach())
    close(scores_of(made("finetune-head", STEPS, rate=rate), tasks), torch.stack(expected))


def test_steps_smaller_than_the_support_see_all_of_it_in_each_epoch() -> None:
    tasks, method = decoded(), made("finetune-head", 2, batch=4)
    seen = [*method._batches(tasks)]
    assert [items.shape[1] for items, _ in seen] == [4, 2, 4, 2]
    for task in range(2):
        rows = torch.cat([items[task] for items, _ in seen[:2]]).flatten(1).sum(1).sort().values
        assert torch.equal(rows, tasks.support[task].flatten(1).sum(1).sort().values)
    assert not torch.equal(seen[0][0], seen[2][0])
    assert scores_of(method, tasks).isfinite().all()


def test_the_second_stage_of_lp_ft_starts_where_the_first_ended() -> None:
    tasks = decoded()
    first = scores_of(made("lp-ft", 0), tasks)
    close(scores_of(made("lp-ft", 1, rate=1e-9), tasks), first)


class Parallel(nn.Module):
    """A convolution with a 1 x 1 convolution beside it."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.conv, self.beside = conv, nn.Conv2d(conv.in_channels, conv.out_channels, 1, conv.stride, bias=False)
        with torch.no_grad():
            self.beside.weight.copy_(1e-4 * torch.eye(conv.out_channels, conv.in_channels)[..., None, None])

    def forward(self, maps: Tensor) -> Tensor:
        return self.conv(maps) + self.beside(maps)


def test_tsa_is_adadelta_on_convolutions_beside_the_backbones() -> None:
    tasks, expected = decoded(), []
    for task in range(2):
        net, _ = tuned_body("tsa")
        for block in net.backbone.blocks:
            block[0] = Parallel(block[0])
        beside = [block[0].beside.weight for block in net.backbone.blocks]
        features = nn.Parameter(torch.eye(64))
        optimizer = torch.optim.Adadelta([{"params": beside, "lr": 0.1}, {"params": [features], "lr": 1.0}])
        target = tasks.target[task]
        for _ in range(STEPS):
            optimizer.zero_grad()
            vectors = net(tasks.support[task]) @ features.T
            functional.cross_entropy(cosines(vectors, target, vectors), tasks.labels[task]).backward()
            optimizer.step()
        seen = [net(side[task]) @ features.T for side in (tasks.support, tasks.query)]
        expected.append(cosines(seen[0], target, seen[1]).detach())
    close(scores_of(made("tsa", STEPS), tasks), torch.stack(expected))


@pytest.mark.parametrize("spelling", [None, "lite0"])
def test_tsa_refuses_networks_without_its_convolutions(spelling: str | None) -> None:
    model = pretrained_model(spelling)
    name = re.escape(str(model.backbone))
    with pytest.raises(Mismatch, match=rf"method 'tsa\(steps=2\)': backbone '{name}' has no 3 x 3 convolutions"):
        made("tsa").require_model(model)


def test_lora_changes_every_matrix_by_one_of_its_rank() -> None:
    tasks = decoded()
    few, many = (scores_of(made("lora", STEPS, rank=rank), tasks) for rank in (1, 8))
    assert not torch.allclose(few, many, atol=1e-5)
    method = made("lora", rank=2)
    own = {"some.weight": torch.zeros(5, 3, 2, 2)}
    start = method._initial_matrices(own, tasks)
    assert start["some.weight up"].shape == (2, 5, 2)
    assert not start["some.weight up"].any()
    assert start["some.weight down"].shape == (2, 2, 12)
    assert not torch.equal(start["some.weight down"][0], start["some.weight down"][1])


def test_transductive_finetuning_of_a_classifier_is_adam_on_all_of_it_and_on_a_head_on_its_logits() -> None:
    model, tasks, expected = model_of(objectives.make("baseline"), 4), decoded(), []
    for task in range(2):
        net, target = model.network(), tasks.target[task]

        def directions(items: Tensor, net: FewShotNetwork = net) -> Tensor:
            return functional.normalize(net.head(net(items)).relu(), dim=1)

        start = functional.normalize(target.T @ net.head(net(tasks.support[task])).relu(), dim=1)
        weight, bias = nn.Parameter(start.detach()), nn.Parameter(torch.zeros(3))
        optimizer = torch.optim.Adam([*net.parameters(), weight, bias], 5e-3)
        for _ in range(2):
            logits = directions(tasks.support[task]) @ weight.T + bias
            optimizer.zero_grad()
            functional.cross_entropy(logits, tasks.labels[task]).backward()
            optimizer.step()
            logits = directions(tasks.query[task]) @ weight.T + bias
            optimizer.zero_grad()
            torch.distributions.Categorical(logits=logits).entropy().mean().backward()
            optimizer.step()
        expected.append((directions(tasks.query[task]) @ weight.T + bias).detach())
    with torch.no_grad():
        scores = made("transductive-finetune-network").adapted_scores(model, model.network(), tasks)
    close(scores, torch.stack(expected))


def test_transductive_finetuning_makes_the_queries_sure() -> None:
    tasks = decoded()

    def entropy(length: int) -> float:
        told = scores_of(made("transductive-finetune-network", length), tasks).log_softmax(-1)
        return -(told.exp() * told).sum(-1).mean().item()

    assert entropy(6) < entropy(0) - 1e-3


@pytest.mark.parametrize("name", ["finetune", "lora"])
def test_transformers_are_tuned_too_each_task_by_itself(name: str) -> None:
    model, tasks = pretrained_model(), tasks_for("ett")
    net, method = model.network(), made(name)
    with torch.no_grad():
        scores = method.adapted_scores(model, net, tasks)
        alone = [method.adapted_scores(model, net, part(tasks, slice(task, task + 1))) for task in range(2)]
    close(torch.cat(alone), scores)
    assert not torch.allclose(scores, frozen_scores(net, tasks), atol=1e-4)
    assert weights_digest(net.state_dict()) == weights_digest(model.weights)


def test_the_second_stage_of_lp_ft_leaves_batch_norm_alone() -> None:
    net = model_for("lp-ft").network()
    names = {name for name, _ in net.named_parameters()}
    left = {f"backbone.blocks.{block}.1.{kind}" for block in range(4) for kind in ("weight", "bias")}
    assert batch_norm_names(net) == left < names
