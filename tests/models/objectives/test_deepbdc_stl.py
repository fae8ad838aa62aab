from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from shotproof.functional.distance_covariance import bdc_vectors
from shotproof.models.objectives.deepbdc_stl import DeepBdcStl
from tests.drawn_tasks import formula
from tests.models.objectives.given_vectors import network_on

FIRST_QUERY = """
-0.966801 0.699824 -0.295171 0.562148 -0.883710 0.469687 -0.285801 -0.522635 0.348119 -0.624467
"""


def fixture_maps() -> torch.Tensor:
    """The queries of the fixture as maps of 4 channels and 2 locations."""
    return formula()[0].query[0].unflatten(1, (2, 4)).mT


def test_the_vector_of_the_fixtures_first_query() -> None:
    vectors = bdc_vectors(fixture_maps(), torch.tensor(math.log(1 / 4)))
    np.testing.assert_allclose(vectors[0], [float(part) for part in FIRST_QUERY.split()], atol=1e-6)


def test_a_constant_on_all_channels_of_a_location_has_no_say() -> None:
    maps, scale = fixture_maps(), torch.tensor(-1.0)
    shifted = maps + torch.tensor([3.0, -2.0])
    torch.testing.assert_close(bdc_vectors(shifted, scale), bdc_vectors(maps, scale))


def test_the_gradient_is_finite_where_channels_are_equal() -> None:
    maps = torch.ones(2, 4, 3, requires_grad=True)
    bdc_vectors(maps, torch.tensor(0.0)).square().sum().backward()
    assert torch.isfinite(maps.grad).all()


@pytest.mark.parametrize(("shot", "strength"), [(1, 0.1), (2, 2.0)])
def test_its_scores_are_those_of_a_logistic_regression(shot: int, strength: float) -> None:
    objective, way = DeepBdcStl(channels=6), 3
    net = network_on(objective, 5, 2, 2, classes=4).eval()
    draw = torch.Generator().manual_seed(1)
    support, query = (torch.randn(1, count, 5, 2, 2, generator=draw) for count in (way * shot, 4))
    labels = torch.arange(way).repeat_interleave(shot)[None]
    with torch.no_grad():
        scores = objective.scores(net, support, labels, query, way)[0]
        rows, asked = (net.head.vectors(maps[0]).double().numpy() for maps in (support, query))
    rows, asked = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (rows, asked))
    reference = LogisticRegression(C=strength, tol=1e-9, max_iter=10_000).fit(rows, labels[0].numpy())
    np.testing.assert_allclose(scores.softmax(-1), reference.predict_proba(asked), atol=1e-4)


def test_the_scale_of_distances_is_learned_in_smaller_steps() -> None:
    objective = DeepBdcStl(channels=6)
    net = network_on(objective, 5, 2, 2, classes=4)
    assert net.head.log_scale.item() == pytest.approx(math.log(1 / 8))
    groups = objective.parameter_groups(net)
    assert [factor for _, factor in groups] == [1.0, 0.02]
    assert sum(len(group) for group, _ in groups) == len(list(net.parameters()))
