from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from shotproof.models.objectives.metaoptnet import MetaOptNet
from tests.fixture_rows import fixture
from tests.small_networks import given_network, given_tasks, loss_of


def test_the_fixture() -> None:
    batch, _ = fixture("S")
    scores = MetaOptNet().scores(given_network(MetaOptNet()), *batch)
    assert scores[0, 0].tolist() == pytest.approx([0.631414, -0.106759, -0.524655], abs=1e-4)
    torch.testing.assert_close(scores.sum(-1), torch.zeros(1, 12, dtype=torch.float64), rtol=0, atol=1e-8)


@pytest.mark.parametrize("strength", [0.1, 1.0])
def test_gradients_through_the_solution_are_those_of_small_differences(strength: float) -> None:
    objective = MetaOptNet(C=strength, iterations=2000)
    tasks, net = given_tasks((5, 1, 1), query=1), given_network(objective, (5, 1, 1))
    query = tasks.query.flatten(2)

    def scores(support: torch.Tensor) -> torch.Tensor:
        return objective.scores(net, support, tasks.support_labels, query, 3)

    assert torch.autograd.gradcheck(scores, tasks.support.flatten(2).requires_grad_(), atol=1e-4)


def test_labels_are_smoothed_where_asked_for() -> None:
    objective, tasks = MetaOptNet(smoothing=0.1), given_tasks()
    net = given_network(objective)
    scores = objective.scores(net, tasks.support.flatten(2), tasks.support_labels, tasks.query.flatten(2), 3)
    target = 0.9 * functional.one_hot(tasks.query_labels, 3) + 0.1 / 3
    torch.testing.assert_close(loss_of(objective, net, tasks), -(target * scores.log_softmax(-1)).sum(-1).mean())
