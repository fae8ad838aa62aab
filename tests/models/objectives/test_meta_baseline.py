from __future__ import annotations

import pytest
import torch

from shotproof.methods.heads.inductive.cosine import CosineCentroid
from shotproof.models.objectives.meta_baseline import MetaBaseline
from tests.drawn_tasks import draw
from tests.fixture_rows import fixture
from tests.small_networks import batch_for, given_network, loss_of, network_of


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
