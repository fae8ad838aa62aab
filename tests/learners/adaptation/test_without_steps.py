"""Without any step, an adaptation is a head on the features of the network as it is."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from shotproof.learners.method import make_method
from tests.learners.adaptation.test_adaptation import close, decoded, made, model_for, scores_of, tasks_for
from tests.small_networks import WAY


def head_scores(name: str, head: str, factor: float = 1.0) -> Tensor:
    net, tasks = model_for(name).network(), tasks_for(name)
    with torch.no_grad():
        support, query = net(tasks.support).double(), net(tasks.query).double()
    method = make_method(head)
    if hasattr(method, "seeded_scores"):
        return method.seeded_scores(support, tasks.labels, query, WAY, tasks.seeds)
    return factor * method.scores(support, tasks.labels, query, WAY)


@pytest.mark.parametrize("name", ["finetune", "tsa", "lora", "ett"])
def test_class_means_are_those_of_the_cosine_head(name: str) -> None:
    close(scores_of(made(name, 0), tasks_for(name)).double(), head_scores(name, "cosine(rows='raw')", 10))


def test_a_cosine_head_begins_with_the_class_means() -> None:
    scores = scores_of(made("finetune-head", 0, head="cosine"), decoded())
    close(scores.double(), head_scores("finetune-head", "cosine", 10))


def test_a_linear_head_begins_with_all_classes_alike() -> None:
    scores = scores_of(made("finetune-head", 0), decoded())
    assert torch.equal(scores[..., :1].expand_as(scores), scores)


def test_transductive_finetuning_begins_as_its_head_on_features() -> None:
    scores = scores_of(made("transductive-finetune-network", 0), decoded())
    close(scores.double(), head_scores("transductive-finetune-network", "transductive-finetune(epochs=0)"))


def test_the_probe_of_lp_ft_is_the_head_of_baseline_plus_plus() -> None:
    scores = scores_of(made("lp-ft", 0, head_epochs=20, head_firth=0), decoded())
    close(scores.double(), head_scores("lp-ft", "baseline++(epochs=20)"))
    biased = scores_of(made("lp-ft", 0, head_epochs=20), decoded())
    assert biased.softmax(-1).amax(-1).mean() < scores.softmax(-1).amax(-1).mean()  # Firth's pull to uniform
