from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from shotproof.models.network import FewShotNetwork
from shotproof.models.objectives.can import CrossAttention
from tests.small_networks import CLASSES, given_network, given_tasks, loss_of

MAPS = (5, 2, 3)


def without_attention(net: FewShotNetwork) -> FewShotNetwork:
    for layer in (net.head.weigh[0], net.head.weigh[-1]):
        layer.weight.data.zero_()
    net.head.weigh[-1].bias.data.zero_()
    return net


def test_without_weights_attention_is_uniform_and_scores_are_scaled_cosines_of_pooled_maps() -> None:
    tasks, net = given_tasks(MAPS), without_attention(given_network(CrossAttention(), MAPS))
    scores = CrossAttention().scores(net, tasks.support, tasks.support_labels, tasks.query, 3)
    means = tasks.support.mean((3, 4)).view(2, 3, 2, 5).mean(2)
    cosines = functional.cosine_similarity(tasks.query.mean((3, 4)).unsqueeze(2), means.unsqueeze(1), dim=-1)
    torch.testing.assert_close(scores, 7 * cosines)
    rows = tasks.query.flatten(3).mT
    for attention in net.head(rows[:, :3], rows):
        torch.testing.assert_close(attention, torch.full_like(attention, 1 + 1 / 6))


def test_a_pair_by_hand() -> None:
    tasks, net = given_tasks(MAPS, tasks=1), given_network(CrossAttention(), MAPS)
    score = CrossAttention().scores(net, tasks.support, tasks.support_labels, tasks.query, 3)[0, 4, 2]
    of_class = tasks.support[0, 4:6].mean(0).flatten(1).T.numpy()
    asked = tasks.query[0, 4].flatten(1).T.numpy()
    first, last = net.head.weigh[0].weight.detach().numpy(), net.head.weigh[-1]

    def unit(rows: np.ndarray) -> np.ndarray:
        return rows / np.linalg.norm(rows, axis=-1, keepdims=True)

    def attention(correlation: np.ndarray) -> np.ndarray:
        hidden = np.maximum(first @ correlation.mean(0) / math.sqrt(1 + 1e-5), 0)  # batch norm has seen nothing yet
        weights = last.weight.detach().numpy() @ hidden + last.bias.detach().numpy()
        share = np.exp(correlation @ weights / 6 / 0.025)
        return 1 + share / share.sum()

    correlation = unit(of_class) @ unit(asked).T
    pooled = [
        unit((attention(c)[:, None] * rows).mean(0)) for c, rows in ((correlation, of_class), (correlation.T, asked))
    ]
    assert score.item() == pytest.approx(7 * pooled[0] @ pooled[1], abs=1e-8)


def test_the_loss_at_the_start_of_a_classifier_that_knows_nothing() -> None:
    tasks, net = given_tasks(MAPS), without_attention(given_network(CrossAttention(), MAPS))
    net.head.classifier.weight.data.zero_()
    net.head.classifier.bias.data.zero_()
    means = functional.normalize(tasks.support.mean((3, 4)).view(2, 3, 2, 5).mean(2), dim=-1)
    cosines = torch.einsum("bmdr,bwd->bmrw", functional.normalize(tasks.query.flatten(3), dim=2), means)
    of_query = (7 * cosines).log_softmax(-1).gather(-1, tasks.query_labels[..., None, None].expand(-1, -1, 6, 1))
    expected = math.log(CLASSES) - 0.5 * of_query.mean().item()
    assert loss_of(CrossAttention(), net, tasks).item() == pytest.approx(expected)


def test_the_training_class_is_told_from_the_query_as_it_attends_to_its_own_class() -> None:
    tasks, net = given_tasks(MAPS), given_network(CrossAttention(), MAPS)
    known = tasks.support.flatten(3).mT.view(2, 3, 2, 6, 5).mean(2)
    _, of_query = net.head(known, tasks.query.flatten(3).mT)
    losses = []
    for task in range(2):
        for query in range(9):
            label = tasks.query_labels[task, query]
            rows = tasks.query[task, query].flatten(1).T * of_query[task, query, label].unsqueeze(-1)
            truth = tasks.classes[task, label].expand(6)
            losses.append(functional.cross_entropy(net.head.classifier(rows), truth))
    light = CrossAttention(task_weight=1e-12)
    assert loss_of(light, net, tasks).item() == pytest.approx(torch.stack(losses).mean().item())
