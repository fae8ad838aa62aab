from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import MultivariateNormal, kl_divergence

from shotproof.core.errors import InputError
from shotproof.methods.heads.maps.adm import AsymmetricDistribution
from tests.drawn_tasks import as_maps, draw


def gaussian(rows: torch.Tensor) -> MultivariateNormal:
    return MultivariateNormal(rows.mean(0), rows.T.cov() + 0.01 * torch.eye(rows.shape[1]))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.sampled_from([12, 24]))
def test_agrees_with_the_divergence_of_torch(seed: int, d: int) -> None:
    batch = as_maps(draw(seed, tasks=1, queries=3, d=d))
    scores = AsymmetricDistribution().scores(*batch)[0]
    for c in range(batch.way):
        pool = batch.support[0, batch.labels[0] == c].flatten(2).mT.flatten(0, 1)
        for query in range(3):
            asked = batch.query[0, query].flatten(1).T
            assert scores[query, c].item() == pytest.approx(-kl_divergence(gaussian(asked), gaussian(pool)).item())


def test_a_query_is_at_no_distance_from_itself() -> None:
    batch = as_maps(draw(shots=(1, 1, 1)))
    scores = AsymmetricDistribution().scores(*batch._replace(query=batch.support))
    own = scores.gather(-1, batch.labels.unsqueeze(-1))
    torch.testing.assert_close(own, torch.zeros_like(own), rtol=0, atol=1e-9)
    assert (scores <= 1e-9).all()


def test_one_location_has_no_covariance() -> None:
    with pytest.raises(InputError, match=r"'adm' needs maps of at least 2 locations, found \[12, 1, 1\]"):
        AsymmetricDistribution().scores(*as_maps(draw(), 1, 1))
