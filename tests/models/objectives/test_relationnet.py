from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from shotproof.models.objectives.relationnet import RelationNet
from tests.small_networks import given_network, given_tasks, loss_of


@pytest.mark.parametrize("maps", [(4, 5, 5), (4, 4, 3), (3, 21, 21), (3, 10, 12)])
def test_it_compares_query_and_class_side_by_side(maps: tuple[int, int, int]) -> None:
    objective, tasks = RelationNet(), given_tasks(maps, tasks=1, query=1)
    net = given_network(objective, maps)
    head = net.head
    scores = objective.scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    for label in range(3):
        of_class = tasks.support[0, tasks.support_labels[0] == label].mean(0)
        for query in range(3):
            pair = torch.cat([tasks.query[0, query], of_class]).unsqueeze(0)
            torch.testing.assert_close(scores[0, query, label], head.relation(head.body(head.first(pair)))[0, 0])
    torch.testing.assert_close(
        objective.scores(net, tasks.support, 2 - tasks.support_labels, tasks.query, 3), scores.flip(-1)
    )


def test_a_map_of_21_locations_a_side_is_halved_twice_without_padding() -> None:
    assert given_network(RelationNet(), (2, 21, 21)).head.relation[0].in_features == 2 * 3 * 3


def test_a_class_is_the_mean_or_the_sum_of_its_shots() -> None:
    maps = (4, 5, 5)
    tasks, net = given_tasks(maps), given_network(RelationNet(), maps)
    summed = RelationNet(shots="sum").scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    doubled = RelationNet().scores(net, 2 * tasks.support, tasks.support_labels, tasks.query, 3)
    torch.testing.assert_close(summed, doubled)


def test_the_squared_error() -> None:
    maps, objective = (4, 5, 5), RelationNet(error="squared")
    tasks, net = given_tasks(maps), given_network(objective, maps)
    scores = objective.scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    target = functional.one_hot(tasks.query_labels, 3)
    torch.testing.assert_close(loss_of(objective, net, tasks), (1 / (1 + (-scores).exp()) - target).square().mean())
