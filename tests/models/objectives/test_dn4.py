from __future__ import annotations

import pytest
import torch

from shotproof.models.objectives.dn4 import Dn4
from tests.fixture_rows import fixture
from tests.small_networks import given_network, given_tasks

MAPS = (4, 2, 3)


@pytest.mark.parametrize(("k", "expected"), [(1, [0.580611, 0.867158, 1.586282]), (3, [0.696240, 0.776821, 2.015584])])
def test_the_fixture(k: int, expected: list[float]) -> None:
    batch, _ = fixture("M")
    assert Dn4(k=k).scores(given_network(Dn4()), *batch)[0, 0].tolist() == pytest.approx(expected, abs=1e-5)


def test_the_order_of_locations_has_no_say() -> None:
    tasks, net = given_tasks(MAPS), given_network(Dn4(), MAPS)
    scores = Dn4().scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    mixed = tasks.support.flatten(3)[..., [4, 0, 5, 1, 3, 2]].view_as(tasks.support)
    torch.testing.assert_close(Dn4().scores(net, mixed, tasks.support_labels, tasks.query, 3), scores)


def test_gradients_are_those_of_small_differences() -> None:
    tasks, net = given_tasks((3, 1, 2), tasks=1, shot=1, query=1), given_network(Dn4(), (3, 1, 2))

    def scores(support: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        return Dn4(k=1).scores(net, support, tasks.support_labels, query, 3)

    assert torch.autograd.gradcheck(scores, (tasks.support.requires_grad_(), tasks.query.requires_grad_()))
