from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from shotproof.models.objectives.solvers import MetaOptNet, R2d2
from tests.fixture_rows import fixture
from tests.small_networks import given_network, given_tasks, loss_of


@pytest.mark.parametrize(
    ("penalty", "expected"), [(50.0, [0.072890, -0.008418, -0.116377]), (1.0, [0.816164, 0.019014, -0.176712])]
)
def test_r2d2_on_the_fixture(penalty: float, expected: list[float]) -> None:
    batch, _ = fixture("S")
    objective = R2d2(penalty=penalty)
    assert objective.scores(given_network(objective), *batch)[0, 0].tolist() == pytest.approx(expected, abs=1e-5)


def test_it_is_ridge_regression_in_the_primal() -> None:
    tasks, objective = given_tasks(), R2d2(penalty=1)
    support, query = tasks.support.flatten(2), tasks.query.flatten(2)
    scores = objective.scores(given_network(objective), support, tasks.support_labels, query, 3)
    for task in range(2):
        rows, target = support[task].numpy(), np.eye(3)[tasks.support_labels[task].numpy()]
        weights = np.linalg.solve(rows.T @ rows + np.eye(8), rows.T @ target)
        np.testing.assert_allclose(scores[task].detach(), query[task].numpy() @ weights, atol=1e-10)


@pytest.mark.parametrize("name", ["log_penalty", "scale"])
def test_gradients_of_what_is_learned_are_those_of_small_differences(name: str) -> None:
    objective, tasks = R2d2(penalty=2), given_tasks()
    net = given_network(objective)
    loss_of(objective, net, tasks).backward()
    learned = net.head.get_parameter(name)
    start, ends = learned.detach().clone(), []
    for step in (1e-5, -1e-5):
        learned.data = start + step
        ends.append(loss_of(objective, net, tasks).item())
    assert learned.grad is not None
    assert learned.grad.item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4)
    assert abs(learned.grad.item()) > 1e-4


def test_gradients_of_rows_are_those_of_small_differences() -> None:
    objective, tasks = R2d2(penalty=2), given_tasks((3, 1, 1), tasks=1, query=1)
    net = given_network(objective, (3, 1, 1))

    def scores(support: torch.Tensor) -> torch.Tensor:
        return objective.scores(net, support, tasks.support_labels, tasks.query.flatten(2), 3)

    assert torch.autograd.gradcheck(scores, tasks.support.flatten(2).requires_grad_())


def test_metaoptnet_on_the_fixture() -> None:
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
