from __future__ import annotations

import numpy as np
import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.models.objectives.graphs import GraphNetwork, Propagation
from tests.small_networks import given_network, given_tasks, loss_of

OBJECTIVE = GraphNetwork(dim=5, width=8)
MAPS = (4, 3, 2)


def test_a_graph_by_hand() -> None:
    tasks, net = given_tasks(), given_network(OBJECTIVE)
    head = net.head
    scores = OBJECTIVE.scores(net, tasks.support.flatten(2), tasks.support_labels, tasks.query.flatten(2), 3)
    known = torch.cat([head.project(tasks.support[1].flatten(1)), torch.eye(3)[tasks.support_labels[1]]], 1)
    asked = torch.cat([head.project(tasks.query[1, 4:5].flatten(1)), torch.full((1, 3), 1 / 3)], 1)
    nodes = torch.cat([known, asked])  # the query last: the place in the graph has no say

    def messages(layer: int, nodes: torch.Tensor) -> torch.Tensor:
        given = []
        for node in range(7):
            others = [other for other in range(7) if other != node]
            share = head.edges[layer].network((nodes[others] - nodes[node]).abs()).softmax(0)
            given.append((share * nodes[others]).sum(0))
        return torch.cat([nodes, torch.stack(given)], 1)

    for layer in range(2):
        nodes = torch.cat([nodes, head.layers[layer](messages(layer, nodes))], 1)
    torch.testing.assert_close(scores[1, 4], head.last(messages(2, nodes))[-1])


def test_tasks_of_another_number_of_classes_are_refused() -> None:
    tasks, net = given_tasks(), given_network(OBJECTIVE)
    with pytest.raises(InputError, match=r"'gnn' .* tasks of 3 classes, .* have 4"):
        OBJECTIVE.scores(net, tasks.support.flatten(2), tasks.support_labels, tasks.query.flatten(2), 4)


@pytest.mark.parametrize("neighbors", [3, 50])
def test_labels_spread_over_the_graph(neighbors: int) -> None:
    objective, tasks = Propagation(neighbors=neighbors, alpha=0.9), given_tasks(MAPS)
    net = given_network(objective, MAPS)
    scores = objective.scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    losses = []
    for task in range(2):
        maps = torch.cat([tasks.support[task], tasks.query[task]])
        width = net.head(maps).detach().numpy() + 1e-3
        rows = maps.flatten(1).numpy() / width
        joined = np.exp(-((rows[:, None] - rows) ** 2).mean(-1) / 2)
        near = np.zeros((15, 15), dtype=bool)
        for item in range(15):
            near[item, np.argsort(-joined[item])[:neighbors]] = True
        joined = joined * (near | near.T)
        degree = joined.sum(1)
        graph = joined / np.sqrt(degree[:, None] * degree)
        labels = np.zeros((15, 3))
        labels[np.arange(6), tasks.support_labels[task]] = 1
        expected = np.linalg.inv(np.eye(15) - 0.9 * graph) @ labels
        np.testing.assert_allclose(scores[task].detach(), expected[6:], atol=1e-9)
        truth = np.concatenate([tasks.support_labels[task], tasks.query_labels[task]])
        shares = np.exp(expected) / np.exp(expected).sum(1, keepdims=True)
        losses.append(-np.log(shares[np.arange(15), truth]))
    assert loss_of(objective, net, tasks).item() == pytest.approx(np.mean(losses))


def test_the_other_queries_have_a_say() -> None:
    objective, tasks = Propagation(), given_tasks(MAPS)
    net = given_network(objective, MAPS)
    whole, few = (
        objective.scores(net, tasks.support, tasks.support_labels, tasks.query[:, :count], 3) for count in (9, 1)
    )
    assert not torch.allclose(whole[:, :1], few)
