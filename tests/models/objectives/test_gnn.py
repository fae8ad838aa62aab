from __future__ import annotations

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.models.objectives.gnn import GraphNetwork
from tests.small_networks import given_network, given_tasks

OBJECTIVE = GraphNetwork(dim=5, width=8)


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
    with pytest.raises(InputError, match="'gnn' was trained on tasks of 3 classes, found tasks of 4"):
        OBJECTIVE.scores(net, tasks.support.flatten(2), tasks.support_labels, tasks.query.flatten(2), 4)
