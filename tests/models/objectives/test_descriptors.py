from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.models.objectives.descriptors import Dn4, FeatureMapReconstruction
from tests.fixture_rows import fixture
from tests.small_networks import given_network, given_tasks, loss_of

MAPS = (4, 1, 3)


@pytest.mark.parametrize(("k", "expected"), [(1, [0.580611, 0.867158, 1.586282]), (3, [0.696240, 0.776821, 2.015584])])
def test_dn4_on_the_fixture(k: int, expected: list[float]) -> None:
    batch, _ = fixture("M")
    assert Dn4(k=k).scores(given_network(Dn4()), *batch)[0, 0].tolist() == pytest.approx(expected, abs=1e-5)


def test_the_order_of_locations_has_no_say() -> None:
    tasks, net = given_tasks((4, 2, 3)), given_network(Dn4(), (4, 2, 3))
    scores = Dn4().scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    mixed = tasks.support.flatten(3)[..., [4, 0, 5, 1, 3, 2]].view_as(tasks.support)
    torch.testing.assert_close(Dn4().scores(net, mixed, tasks.support_labels, tasks.query, 3), scores)


def test_gradients_of_dn4_are_those_of_small_differences() -> None:
    tasks, net = given_tasks((3, 1, 2), tasks=1, shot=1, query=1), given_network(Dn4(), (3, 1, 2))

    def scores(support: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        return Dn4(k=1).scores(net, support, tasks.support_labels, query, 3)

    assert torch.autograd.gradcheck(scores, (tasks.support.requires_grad_(), tasks.query.requires_grad_()))


def test_frn_on_the_fixture() -> None:
    batch, _ = fixture("M")
    objective = FeatureMapReconstruction(divide=False)
    scores = objective.scores(given_network(objective), *batch)
    assert scores[0, 0].tolist() == pytest.approx([-3.305517, -2.449722, -1.270050], abs=1e-5)


def test_it_is_the_reconstruction_in_the_primal_with_what_was_learned() -> None:
    objective, tasks = FeatureMapReconstruction(), given_tasks(MAPS)
    net = given_network(objective, MAPS)
    for name, value in (("alpha", 0.3), ("beta", -0.2), ("gamma", 1.7)):
        net.head.get_parameter(name).data.fill_(value)
    scores = objective.scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    rows, asked = (side.flatten(3).mT.numpy() / 2 for side in (tasks.support, tasks.query))  # the root of 4 channels
    for label in range(3):
        of_class = rows[1][tasks.support_labels[1].numpy() == label].reshape(-1, 4)
        square = of_class.T @ of_class
        penalty = len(of_class) / 4 * np.exp(0.3) + 1e-6
        change = np.exp(-0.2) * np.linalg.inv(square + penalty * np.eye(4)) @ square - np.eye(4)
        errors = ((asked[1] @ change) ** 2).sum(-1).mean(-1)
        np.testing.assert_allclose(scores[1, :, label].detach(), -1.7 * errors, atol=1e-10)


def test_under_a_huge_penalty_nothing_is_rebuilt() -> None:
    objective, tasks = FeatureMapReconstruction(divide=False), given_tasks(MAPS)
    net = given_network(objective, MAPS)
    net.head.get_parameter("alpha").data.fill_(40)
    scores = objective.scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    lengths = tasks.query.square().sum(2).mean((2, 3))
    torch.testing.assert_close(scores, -lengths.unsqueeze(-1).expand(-1, -1, 3))


def test_classes_that_overlap_cost() -> None:
    tasks = given_tasks(MAPS)
    net = given_network(FeatureMapReconstruction(), MAPS)
    without, whole = (loss_of(FeatureMapReconstruction(apart=weight), net, tasks).item() for weight in (0.0, 0.03))
    overlaps = []
    for task in range(2):
        rows = tasks.support[task].flatten(2).mT.numpy()
        pools = [rows[tasks.support_labels[task].numpy() == label].reshape(-1, 4) for label in range(3)]
        length = np.sqrt(sum((pool**2).sum() for pool in pools))
        pairs = ((0, 1), (0, 2), (1, 2))
        overlaps.append(sum(((pools[i] @ pools[j].T / length**2) ** 2).sum() for i, j in pairs))
    assert whole - without == pytest.approx(0.03 * np.mean(overlaps))


def test_gradients_of_frn_are_those_of_small_differences() -> None:
    objective, tasks = FeatureMapReconstruction(), given_tasks((3, 1, 2), tasks=1, shot=1, query=1)
    net = given_network(objective, (3, 1, 2))

    def scores(support: torch.Tensor) -> torch.Tensor:
        return objective.scores(net, support, tasks.support_labels, tasks.query, 3)

    assert torch.autograd.gradcheck(scores, tasks.support.requires_grad_())
