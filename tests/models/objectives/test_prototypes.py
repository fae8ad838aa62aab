from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from shotproof.learners.heads.inductive.centroids import CosineCentroid
from shotproof.models.objectives.prototypes import Feat, MetaBaseline, SelfAttention
from tests.drawn_tasks import draw
from tests.fixture_rows import fixture
from tests.small_networks import batch_for, given_network, given_tasks, loss_of, network_of


def test_the_fixture() -> None:
    batch, _ = fixture("S")
    scores = MetaBaseline().scores(given_network(MetaBaseline()), *batch)
    assert scores[0, 0].tolist() == pytest.approx([2.45444, -0.25486, -6.54048], abs=2e-5)


def test_before_training_it_answers_as_the_nearest_centroid_by_cosine() -> None:
    batch = draw()
    scores = MetaBaseline(scale=3).scores(given_network(MetaBaseline(scale=3)), *batch)
    torch.testing.assert_close(scores / 3, CosineCentroid(rows="raw").scores(*batch))


def test_a_step_changes_the_scale() -> None:
    objective = MetaBaseline()
    net = network_of(objective).train()
    loss_of(objective, net, batch_for(objective)).backward()
    scale = net.head.get_parameter("scale")
    assert scale.item() == 10
    assert scale.grad is not None
    assert scale.grad.item() != 0


def changed(head: SelfAttention, rows: np.ndarray) -> np.ndarray:
    query, key, value, out = (
        rows @ layer.weight.detach().numpy().T if layer is not head.out else layer
        for layer in (head.query, head.key, head.value, head.out)
    )
    share = np.exp(query @ key.T / np.sqrt(rows.shape[1]))
    seen = share / share.sum(1, keepdims=True) @ value
    added = rows + seen @ out.weight.detach().numpy().T + out.bias.detach().numpy()
    centered = added - added.mean(1, keepdims=True)
    return centered / np.sqrt(centered.var(1, keepdims=True) + 1e-5)


def test_class_means_attend_to_each_other() -> None:
    tasks, net = given_tasks(), given_network(Feat())
    support, query = tasks.support.flatten(2), tasks.query.flatten(2)
    scores = Feat().scores(net, support, tasks.support_labels, query, 3)
    for task in range(2):
        means = changed(net.head, support[task].view(3, 2, 8).mean(1).numpy())
        distances = ((query[task].numpy()[:, None] - means) ** 2).sum(-1)
        np.testing.assert_allclose(scores[task].detach(), -distances / 64, atol=1e-10)


def test_the_second_term_compares_all_items_with_the_means_of_their_changed_classes() -> None:
    tasks, net = given_tasks(), given_network(Feat())
    plain, whole = (loss_of(Feat(balance=weight), net, tasks).item() for weight in (0.0, 1.0))
    losses = []
    for task in range(2):
        rows = torch.cat([tasks.support[task], tasks.query[task]]).flatten(1)
        labels = torch.cat([tasks.support_labels[task], tasks.query_labels[task]])
        means = np.stack([changed(net.head, rows[labels == label].numpy()).mean(0) for label in range(3)])
        distances = (rows.unsqueeze(1) - torch.from_numpy(means)).square().sum(-1)
        losses.append(functional.cross_entropy(-distances / 32, labels).item())
    assert whole - plain == pytest.approx(np.mean(losses))


def test_the_attention_learns_faster() -> None:
    net = network_of(Feat())
    groups = Feat(head_rate=10).parameter_groups(net)
    assert [factor for _, factor in groups] == [1, 10]
    assert sum(len(group) for group, _ in groups) == len(list(net.parameters()))
