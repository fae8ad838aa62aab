from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.models.objectives.matching import Matching
from tests.fixture_rows import fixture
from tests.small_networks import given_network, given_tasks, loss_of


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(100.0, [-0.273482, -1.430146, -12.751771]), (10.0, [-0.768604, -0.922211, -1.975413])],
)
def test_the_fixture(scale: float, expected: list[float]) -> None:
    batch, _ = fixture("S")
    objective = Matching(scale=scale)
    assert objective.scores(given_network(objective), *batch)[0, 0].tolist() == pytest.approx(expected, abs=1e-5)


def test_its_loss_is_the_mean_of_minus_the_logarithm_of_the_probability() -> None:
    objective, tasks = Matching(), given_tasks()
    net = given_network(objective)
    scores = objective.scores(net, tasks.support.flatten(2), tasks.support_labels, tasks.query.flatten(2), 3)
    torch.testing.assert_close(scores.exp().sum(-1), torch.full((2, 9), 1 + 3e-6, dtype=torch.float64))
    picked = scores.gather(-1, tasks.query_labels.unsqueeze(-1))
    torch.testing.assert_close(loss_of(objective, net, tasks), -picked.mean())


def test_embeddings_in_context_by_hand() -> None:
    objective = Matching(context=True)
    net = given_network(objective)
    tasks = given_tasks(tasks=1)
    support, query = tasks.support[0].flatten(1).numpy(), tasks.query[0].flatten(1).numpy()
    weights = {name: each.detach().numpy() for name, each in net.head.named_parameters()}

    def sigmoid(values: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-values))

    def step(name: str, row: np.ndarray, hidden: np.ndarray, memory: np.ndarray, end: str) -> tuple[np.ndarray, ...]:
        given = weights[f"{name}.weight_ih{end}"] @ row + weights[f"{name}.bias_ih{end}"]
        kept = weights[f"{name}.weight_hh{end}"] @ hidden + weights[f"{name}.bias_hh{end}"]
        enter, forget, cell, out = np.split(given + kept, 4)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(cell)
        return sigmoid(out) * np.tanh(memory), memory

    read = support.copy()
    for end, order in (("_l0", range(6)), ("_l0_reverse", range(5, -1, -1))):
        hidden, memory = np.zeros(8), np.zeros(8)
        for row in order:
            hidden, memory = step("reader", support[row], hidden, memory, end)
            read[row] += hidden
    asked = []
    for row in query:
        hidden, memory = row, np.zeros(8)
        for _ in range(6):
            attention = np.exp(read @ hidden)
            seen = attention / attention.sum() @ read
            moved, memory = step("cell", np.concatenate([row, seen]), hidden, memory, "")
            hidden = moved + row
        asked.append(hidden)
    found = net.head(tasks.support.flatten(2), tasks.query.flatten(2))
    np.testing.assert_allclose(found[0][0].detach(), read, atol=1e-10)
    np.testing.assert_allclose(found[1][0].detach(), np.stack(asked), atol=1e-10)
    loss_of(objective, net, tasks).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.head.parameters())
