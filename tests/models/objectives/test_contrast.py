"""Objectives on views, against brute force."""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt
import pytest
import torch

from shotproof.models.model import weights_digest
from shotproof.models.objective import ViewBatch, objectives
from shotproof.models.objectives.contrast import MoCo, SimClr, contrastive_loss, prototype_loss
from tests.models.objectives.given_vectors import as_items, network_on
from tests.models.objectives.untrained_models import NAMES, model_of
from tests.small_networks import batch_for, loss_of, network_of

LABELS = torch.tensor([0, 1, 0, 2])


def unit_rows(count: int, seed: int) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(count, 6, generator=torch.Generator().manual_seed(seed)), dim=1)


def cross_entropy(similarities: list[float], own: int) -> float:
    return float(np.log(np.exp(similarities).sum()) - similarities[own])


def test_simclr_tells_the_other_view_among_all_others() -> None:
    objective = SimClr(temperature=0.3, projection=5)
    net = network_on(objective, 6, 1, 1, classes=3)
    views = [as_items(unit_rows(4, seed)) for seed in (0, 1)]
    with torch.no_grad():
        rows: npt.NDArray[np.float32] = net.head(net(torch.cat(views))).numpy()
        loss = objective.loss(net, ViewBatch(views[0], views[1], LABELS), torch.Generator())
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    losses = []
    for place in range(8):
        others = [other for other in range(8) if other != place]
        losses.append(cross_entropy([rows[place] @ rows[i] / 0.3 for i in others], others.index((place + 4) % 8)))
    assert loss.item() == pytest.approx(np.mean(losses), rel=1e-5)


def test_simclr_of_views_that_are_all_alike_guesses() -> None:
    objective = SimClr()
    net = network_on(objective, 6, 1, 1, classes=3).eval()
    alike = as_items(torch.ones(4, 6))
    loss = objective.loss(net, ViewBatch(alike, alike, LABELS), torch.Generator())
    assert loss.item() == pytest.approx(np.log(7), rel=1e-5)


def test_moco_tells_the_other_view_among_the_batch_and_the_queue() -> None:
    objective = MoCo(temperature=0.4, projection=5, queue=3)
    net = network_on(objective, 6, 1, 1, classes=3).eval()  # batch norm would have the views seen together
    views = [as_items(unit_rows(4, seed)) for seed in (0, 1)]
    queue = net.head.momentum.queue.numpy().copy()
    with torch.no_grad():
        for parameter in net.head.momentum.head.parameters():
            parameter.mul_(0.5)  # so that the two networks differ
        first, second = (net.head.projection(net(view)).numpy() for view in views)
        seen_first, seen_second = (net.head.momentum.head(net(view)).numpy() for view in views)
        loss = objective.loss(net, ViewBatch(views[0], views[1], LABELS), torch.Generator())
    losses = [
        cross_entropy([asked[place] @ other / 0.4 for other in np.concatenate([others, queue])], place)
        for asked, others in ((first, seen_second), (second, seen_first))
        for place in range(4)
    ]
    assert loss.item() == pytest.approx(np.mean(losses), rel=1e-5)
    torch.testing.assert_close(net.head.momentum.queue, torch.from_numpy(seen_first[:3]))


def test_the_momentum_network_follows_the_trained_one() -> None:
    objective = MoCo(momentum=0.75, queue=5)
    net = network_of(objective).train()
    loss_of(objective, net, batch_for(objective)).backward()
    before = copy.deepcopy(net.head.momentum)
    with torch.no_grad():
        for each in net.parameters():
            if each.requires_grad:
                each += 1.0
    objective.after_update(net)
    follows = [(net.head.momentum.backbone, before.backbone), (net.head.momentum.head, before.head)]
    for after, earlier in follows:
        for now, was in zip(after.parameters(), earlier.parameters(), strict=True):
            torch.testing.assert_close(now, was + 0.25)


def test_the_momentum_network_starts_where_training_starts() -> None:
    objective, start = MoCo(), model_of(objectives.make("baseline"), seed=3)
    net = network_of(objective)
    objective.begin(net, start, NAMES)
    for network in (net.backbone, net.head.momentum.backbone):
        assert weights_digest(network.state_dict()) == weights_digest(start.network().backbone.state_dict())


def test_prototypes_of_a_batch_are_its_class_means() -> None:
    first, second = unit_rows(4, 0), unit_rows(4, 1)
    means = np.stack([first[label == LABELS].numpy().mean(0) for label in range(3)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    losses = [
        cross_entropy(list(row @ means.T / 0.2), int(label)) for row, label in zip(second.numpy(), LABELS, strict=True)
    ]
    assert prototype_loss(first, second, LABELS, 0.2).item() == pytest.approx(np.mean(losses), rel=1e-5)


def test_views_of_one_class_are_told_from_those_of_others() -> None:
    rows, labels = unit_rows(8, 2).numpy(), LABELS.repeat(2).numpy()
    losses = []
    for place in range(8):
        others = [other for other in range(8) if other != place]
        similarities = [rows[place] @ rows[other] / 0.2 for other in others]
        alike = [number for number, other in enumerate(others) if labels[other] == labels[place]]
        losses.append(np.mean([cross_entropy(similarities, number) for number in alike]))
    found = contrastive_loss(torch.from_numpy(rows), torch.from_numpy(labels), 0.2)
    assert found.item() == pytest.approx(np.mean(losses), rel=1e-5)
