from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from shotproof.core.errors import Mismatch
from shotproof.learners.method import make_method
from shotproof.models.inner_loop import normalized_by
from tests.learners.adaptation.test_adaptation import close, decoded, made, model_for, scores_of
from tests.small_networks import WAY


@pytest.mark.parametrize("name", ["anil", "boil", "maml"])
def test_without_steps_the_scores_are_the_plain_logits(name: str) -> None:
    net, tasks = model_for(name).network(), decoded()
    with torch.no_grad():
        logits = []
        for query in tasks.query:  # anil's network is evaluated, the others are normalized by each task's queries
            with normalized_by(net, "running" if name == "anil" else "batch"):
                logits.append(net.head(net(query)))
    close(scores_of(made(name, 0), tasks), torch.stack(logits))


@pytest.mark.parametrize("name", ["anil", "boil", "maml"])
def test_unless_told_steps_and_rate_are_the_models(name: str) -> None:
    model, tasks = model_for(name), decoded()
    net = model.network()
    with torch.no_grad():
        seen = [net(side, model.objective.needs) for side in (tasks.support, tasks.query)]
        expected = model.objective.scores(net, seen[0], tasks.labels, seen[1], WAY)
    assert torch.equal(scores_of(make_method(name), tasks), expected)


def test_a_model_of_another_objective_is_refused() -> None:
    with pytest.raises(Mismatch, match=r"'anil' needs a model of objective 'anil', found one of 'boil"):
        made("anil", None).require_model(model_for("boil"))


def test_as_published_each_class_of_queries_is_a_batch_of_its_own() -> None:
    tasks = decoded(1)
    for name in ("anil", "boil"):
        published = scores_of(made(name, protocol="published"), tasks)
        net = model_for(name).network().train()
        for label in range(WAY):
            rows = tasks.query_labels[0] == label
            with torch.no_grad():
                both = net(torch.cat([tasks.support[0], tasks.query[0, rows]]))
            if name == "anil":
                weight, bias = net.head.weight.detach(), net.head.bias.detach()
                for _ in range(2):
                    slope = ((both[:6] @ weight.T + bias).softmax(1) - tasks.target[0]) / 6
                    weight, bias = weight - 0.01 * slope.T @ both[:6], bias - 0.01 * slope.sum(0)
                close(published[0, rows], both[6:] @ weight.T + bias)
        alone = replace(
            tasks, query=tasks.query[:, tasks.query_labels[0] == 1], query_labels=torch.ones(1, 3, dtype=torch.long)
        )
        close(scores_of(made(name, protocol="published"), alone), published[:, tasks.query_labels[0] == 1])
        assert not torch.allclose(published, scores_of(made(name), tasks), atol=1e-3)


def test_normalized_by_its_own_class_a_query_loses_what_its_class_has_of_its_own() -> None:
    """The classes differ in brightness alone, which batch norm takes out of a batch of one class."""
    tasks = decoded(4)
    spread = {}
    for protocol in ("one-pass", "published"):
        scores = scores_of(made("boil", protocol=protocol), tasks)
        means = torch.stack([scores[tasks.query_labels == label].mean(0) for label in range(WAY)])
        spread[protocol] = (means - means.mean(0)).square().mean().item()
    assert spread["published"] < 0.1 * spread["one-pass"]
