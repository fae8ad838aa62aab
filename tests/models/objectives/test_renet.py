from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional

from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassBatch, TaskBatch
from shotproof.models.objectives.renet import RelationalEmbedding, center_channels
from tests.small_networks import given_network, given_tasks, loss_of

MAPS = (6, 3, 2)
OBJECTIVE = RelationalEmbedding()


def network() -> FewShotNetwork:
    """A network whose batch norm has seen something, so that it changes what it gets."""
    net = given_network(OBJECTIVE, MAPS).train()
    OBJECTIVE.scores(net, *sides(given_tasks(MAPS, seed=4)))
    return net.eval()


def sides(tasks: TaskBatch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    return tasks.support, tasks.support_labels, tasks.query, 3


def test_self_correlation_at_each_location() -> None:
    head, maps = network().head, given_tasks(MAPS).query[0]
    unit = functional.normalize(maps.relu(), dim=1)
    part = head.self_correlation
    expected = torch.zeros(len(maps), 64, 3, 2, dtype=torch.float64)
    for row, column in itertools.product(range(3), range(2)):
        window = torch.zeros(len(maps), 6, 5, 5, dtype=torch.float64)
        for down, right in itertools.product(range(5), range(5)):
            y, x = row + down - 2, column + right - 2
            if 0 <= y < 3 and 0 <= x < 2:
                window[:, :, down, right] = unit[:, :, y, x] * unit[:, :, row, column]
        narrow = part.reduce(window.flatten(2)).view(-1, 64, 5, 5)
        expected[:, :, row, column] = part.window(narrow)[:, :, 0, 0]
    torch.testing.assert_close(head.relate(maps), (maps + part.restore(expected)).relu())


def test_convolutions_are_over_one_plane_and_then_over_the_other() -> None:
    part = network().head.refine[0]
    draw = torch.Generator().manual_seed(0)
    values = torch.randn(2, 1, 3, 2, 3, 2, generator=draw, dtype=torch.float64)
    first = torch.zeros_like(values)
    for k, j in itertools.product(range(3), range(2)):
        first[:, :, :, :, k, j] = part.first_norm(part.first(values[:, :, :, :, k, j])).relu()
    second = torch.zeros(2, 16, 3, 2, 3, 2, dtype=torch.float64)
    for k, j in itertools.product(range(3), range(2)):
        second[:, :, k, j] = part.project(part.second_norm(part.second(first[:, :, k, j])))
    torch.testing.assert_close(part(values), second)


def test_attention_has_the_sum_of_the_locations() -> None:
    head, tasks = network().head, given_tasks(MAPS)
    narrow = [head.reduce_channels(center_channels(side, 2)) for side in (tasks.support, tasks.query)]
    for attention in head.attention(*narrow):
        assert attention.shape == (2, 9, 6, 6)
        assert (attention > 0).all()
        torch.testing.assert_close(attention.sum(-1), torch.full((2, 9, 6), 6.0, dtype=torch.float64))


def test_the_attention_of_a_pair() -> None:
    head, tasks = network().head, given_tasks(MAPS)
    support, query = (head.reduce_channels(center_channels(side, 2)) for side in (tasks.support, tasks.query))
    torch.testing.assert_close(support.square().sum(2), torch.ones(2, 6, 3, 2, dtype=torch.float64))
    of_support, of_query = head.attention(support, query)
    agreement = torch.einsum("dij,dkl->ijkl", support[1, 2], query[1, 7])[None, None]

    def refined(values: torch.Tensor) -> torch.Tensor:
        return head.refine[1](head.refine[0](values).relu())[0, 0].reshape(6, 6)

    values = refined(agreement) + refined(agreement.permute(0, 1, 4, 5, 2, 3)).T  # support, query
    for attention, of_side in ((of_support[1, 7, 2], values), (of_query[1, 7, 2], values.T)):
        expected = torch.zeros(6, dtype=torch.float64)
        for other in range(6):  # each location of the other item gives one share
            column = of_side[:, other]
            standard = (column - column.mean()) / (column.square().sum() / 5 - 6 / 5 * column.mean() ** 2 + 1e-5).sqrt()
            expected += (standard / 5).exp() / (standard / 5).exp().sum()
        torch.testing.assert_close(attention, expected)


def test_scores_are_cosines_of_attended_maps_averaged_over_shots() -> None:
    net, tasks = network(), given_tasks(MAPS)
    scores = OBJECTIVE.scores(net, *sides(tasks))
    support, query = (
        center_channels(net.head.relate(side.flatten(0, 1)).view_as(side), 2) for side in (tasks.support, tasks.query)
    )
    of_support, of_query = net.head.attention(net.head.reduce_channels(support), net.head.reduce_channels(query))
    for label in range(3):
        known, asked = torch.zeros(6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
        for shot in (2 * label, 2 * label + 1):
            known += (of_support[1, 5, shot] * support[1, shot].flatten(1)).mean(1) / 2
            asked += (of_query[1, 5, shot] * query[1, 5].flatten(1)).mean(1) / 2
        torch.testing.assert_close(scores[1, 5, label], functional.cosine_similarity(known, asked, dim=0) / 0.2)


def test_the_three_parts_of_the_loss() -> None:
    net, tasks = network(), given_tasks(MAPS)
    beside = ClassBatch(given_tasks(MAPS, seed=1).query[0], torch.arange(9) % 6)
    whole = TaskBatch(*sides(tasks)[:3], tasks.query_labels, tasks.classes, beside)
    scores = OBJECTIVE.scores(net, *sides(tasks))
    of_task = functional.cross_entropy(scores.flatten(0, 1), tasks.query_labels.flatten())
    query = net.head.relate(tasks.query.flatten(0, 1))
    logits = net.head.classifier((query - query.mean(1, keepdim=True)).mean((2, 3)))
    of_query = functional.cross_entropy(logits, tasks.query_classes.flatten())
    of_beside = functional.cross_entropy(net.head.classifier(net.head.relate(beside.items).mean((2, 3))), beside.labels)
    expected = 0.25 * of_task + of_query + of_beside
    assert loss_of(OBJECTIVE, net, whole).item() == pytest.approx(expected.item())
