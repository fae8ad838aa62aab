from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from shotproof.models.network import FewShotNetwork
from shotproof.models.objectives.versa import Versa
from tests.small_networks import given_network, given_tasks, loss_of

OBJECTIVE = Versa(dim=6)


def sure(net: FewShotNetwork, log_variance: float) -> FewShotNetwork:
    """The network with this variance of every weight and bias."""
    for network in (net.head.weight_log_variance, net.head.bias_log_variance):
        network[-1].weight.data.zero_()
        network[-1].bias.data.fill_(log_variance)
    return net


def test_the_moments_of_the_scores() -> None:
    tasks, net = given_tasks(), given_network(OBJECTIVE)
    support, query = tasks.support.flatten(2), tasks.query.flatten(2)
    mean, variance = net.head.moments(support, tasks.support_labels, query, 3)
    rows, asked = net.head.project(support[1]), net.head.project(query[1])
    for label in range(3):
        of_class = rows[2 * label : 2 * label + 2].mean(0)
        expected = asked @ net.head.weight(of_class) + net.head.bias(of_class)
        torch.testing.assert_close(mean[1, :, label], expected)
        spread = (
            asked.square() @ net.head.weight_log_variance(of_class).exp() + net.head.bias_log_variance(of_class).exp()
        )
        torch.testing.assert_close(variance[1, :, label], spread)


def test_a_sure_classifier_is_a_linear_one_whatever_is_drawn() -> None:
    tasks = given_tasks()
    net = sure(given_network(OBJECTIVE), -50.0)
    net.head.weight[-1].weight.data.mul_(5)  # so that scores matter beside the least variance, e^-10
    support, query = tasks.support.flatten(2), tasks.query.flatten(2)
    mean, variance = net.head.moments(support, tasks.support_labels, query, 3)
    assert variance.max() < 1e-2
    expected = functional.cross_entropy(mean.flatten(0, 1), tasks.query_labels.flatten()).item()
    assert loss_of(OBJECTIVE, net, tasks).item() == pytest.approx(expected, abs=5e-3)
    turned = dataclasses.replace(
        tasks,
        **{
            field.name: getattr(tasks, field.name).flip(0)
            for field in dataclasses.fields(tasks)
            if field.name != "extra_items"
        },
    )
    assert loss_of(OBJECTIVE, net, turned).item() == pytest.approx(expected, abs=5e-3)
    scores = OBJECTIVE.scores(net, support, tasks.support_labels, query, 3)
    torch.testing.assert_close(scores, mean, rtol=1e-2, atol=1e-2)


def test_many_samples_come_to_the_mean_probability() -> None:
    objective, tasks = Versa(dim=6, samples=4000), given_tasks(tasks=1, query=1)
    net = sure(given_network(objective), 0.5)
    mean, variance = (
        moment.detach().numpy()
        for moment in net.head.moments(tasks.support.flatten(2), tasks.support_labels, tasks.query.flatten(2), 3)
    )
    drawn = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(200_000, *mean.shape))
    share = np.exp(drawn) / np.exp(drawn).sum(-1, keepdims=True)
    probability = share.mean(0)[0, np.arange(3), np.arange(3)]
    assert loss_of(objective, net, tasks).item() == pytest.approx(-np.log(probability).mean(), abs=0.03)


def test_scores_of_one_variance_keep_the_order_of_the_means() -> None:
    tasks = given_tasks()
    net = sure(given_network(OBJECTIVE), 0.5)
    given = tasks.support.flatten(2), tasks.support_labels, tasks.query.flatten(2), 3
    mean, variance = net.head.moments(*given)
    torch.testing.assert_close(OBJECTIVE.scores(net, *given), mean / (1 + math.pi * variance / 8).sqrt())
    assert torch.equal(OBJECTIVE.scores(net, *given).argmax(-1), mean.argmax(-1))
