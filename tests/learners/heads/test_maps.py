from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import MultivariateNormal, kl_divergence
from torch.nn.functional import cosine_similarity, one_hot

from shotproof.core.errors import InputError
from shotproof.functional import distance_covariance, local_maps
from shotproof.learners.heads.inductive.centroids import CosineCentroid
from shotproof.learners.heads.maps import (
    AsymmetricDistribution,
    DeepBdc,
    Dn4,
    FeatureMapReconstruction,
    GlobalDn4,
    MutualCentralizedLearning,
)
from shotproof.learners.method import make_method
from tests.drawn_tasks import as_maps, draw
from tests.fixture_rows import fixture


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 9), chunk=st.sampled_from([1, 2**24]))
def test_agrees_with_a_loop_over_classes(seed: int, k: int, chunk: int) -> None:
    batch = as_maps(draw(seed, tasks=2, queries=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_maps, "CHUNK_SIZE", chunk)
        scores = Dn4(k).scores(*batch)
    for task in range(2):
        shots = [batch.support[task, batch.labels[task] == c] for c in range(batch.way)]
        fewest = min(k, *(4 * len(maps) for maps in shots))
        for c, maps in enumerate(shots):
            pool = maps.flatten(2).transpose(1, 2).flatten(0, 1)  # [shots r, d]
            for query in range(4):
                asked = batch.query[task, query].flatten(1).T
                cosines = cosine_similarity(asked.unsqueeze(1), pool.unsqueeze(0), dim=-1)
                assert scores[task, query, c].item() == pytest.approx(cosines.topk(fewest).values.sum().item())


def test_the_order_of_locations_does_not_matter() -> None:
    batch = as_maps(draw())
    turned = batch._replace(support=batch.support.flip(3), query=batch.query.mT)
    torch.testing.assert_close(Dn4().scores(*turned), Dn4().scores(*batch))


def test_a_map_of_one_location_and_one_shot_is_the_cosine() -> None:
    batch = draw(shots=(1, 1, 1))
    torch.testing.assert_close(Dn4(1).scores(*as_maps(batch, 1, 1)), CosineCentroid().scores(*batch))


@pytest.mark.parametrize("k", [1, 3])
def test_on_whole_items_one_shot_is_the_nearest_neighbor(k: int) -> None:
    one, several = draw(shots=(1, 1, 1)), draw()
    torch.testing.assert_close(GlobalDn4(k).scores(*one), CosineCentroid().scores(*one))
    torch.testing.assert_close(GlobalDn4(k).scores(*several), Dn4(k).scores(*as_maps(several, 1, 1)))


@settings(deadline=None)
@given(labels=st.lists(st.integers(0, 2), min_size=0, max_size=6))
def test_rows_of_classes(labels: list[int]) -> None:
    given = torch.tensor([[0, 1, 2, *labels]])
    index, present = local_maps.rows_by_class(given, 3)
    assert torch.equal(present.sum(-1), one_hot(given, 3).sum(1))
    for c in range(3):
        assert index[0, c][present[0, c]].tolist() == (given[0] == c).nonzero().flatten().tolist()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), alpha=st.floats(-3, 3), beta=st.floats(-1, 1), divide=st.booleans())
def test_agrees_with_the_primal(seed: int, alpha: float, beta: float, divide: bool) -> None:
    batch = as_maps(draw(seed, tasks=1, queries=2))
    scores = FeatureMapReconstruction(alpha, beta, gamma=2.0, divide=divide).scores(*batch)[0]
    scale = np.sqrt(3) if divide else 1.0
    for c in range(batch.way):
        maps = batch.support[0, batch.labels[0] == c].flatten(2).numpy() / scale
        pool = maps.transpose(0, 2, 1).reshape(-1, 3)
        inner = pool.T @ pool
        hat = np.linalg.solve(inner + (len(pool) / 3 * np.exp(alpha) + 1e-6) * np.eye(3), inner)
        for query in range(2):
            rows = batch.query[0, query].flatten(1).numpy().T / scale
            error = ((np.exp(beta) * rows @ hat - rows) ** 2).sum(1).mean()
            assert scores[query, c].item() == pytest.approx(-2 * error)


def test_a_large_penalty_rebuilds_nothing() -> None:
    batch = as_maps(draw())
    scores = FeatureMapReconstruction(alpha=30, divide=False).scores(*batch)
    expected = -batch.query.flatten(3).square().sum(2).mean(-1, keepdim=True)
    torch.testing.assert_close(scores, expected.expand_as(scores))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), katz=st.sampled_from([0.1, 0.5, 0.999]))
def test_agrees_with_the_whole_walk(seed: int, katz: float) -> None:
    batch = as_maps(draw(seed, tasks=1, queries=2))
    scores = MutualCentralizedLearning(katz=katz).scores(*batch)[0]
    maps = [batch.support[0, batch.labels[0] == c].mean(0).flatten(1).numpy().T for c in range(batch.way)]
    nodes = np.concatenate(maps)
    nodes /= np.linalg.norm(nodes, axis=1, keepdims=True)
    for query in range(2):
        asked = batch.query[0, query].flatten(1).numpy().T
        asked /= np.linalg.norm(asked, axis=1, keepdims=True)
        cosines = asked @ nodes.T
        ahead, back = np.exp(20 * cosines), np.exp(10 * cosines)
        ahead, back = ahead / ahead.sum(1, keepdims=True), back / back.sum(0, keepdims=True)
        size = len(nodes) + len(asked)
        walk = np.zeros((size, size))
        walk[: len(nodes), len(nodes) :] = ahead.T
        walk[len(nodes) :, : len(nodes)] = back
        central = (np.linalg.inv(np.eye(size) - katz * walk) - np.eye(size)).sum(1)[: len(nodes)]
        expected = central.reshape(batch.way, -1).sum(1) / central.sum()
        np.testing.assert_allclose(scores[query], expected, rtol=1e-6, atol=1e-12)


def test_the_centrality_is_shared_out() -> None:
    scores = MutualCentralizedLearning().scores(*as_maps(draw()))
    torch.testing.assert_close(scores.sum(-1), torch.ones(8, 9, dtype=torch.float64))


def test_a_walk_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="katz: expected a number below 1, found 1"):
        make_method("mcl(katz=1)")


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
    with pytest.raises(InputError, match=r"'adm' needs maps .*at least 2 locations, found \[12, 1, 1\]"):
        AsymmetricDistribution().scores(*as_maps(draw(), 1, 1))


def bdc_vector(channels: np.ndarray, t: float) -> np.ndarray:
    """The upper triangle of the double-centered matrix of channels [d, r]."""
    squares = ((channels[:, None] - channels[None]) ** 2).sum(-1)
    roots = np.sqrt(math.exp(t) * squares + 1e-5)
    centered = roots - roots.mean(0) - roots.mean(1, keepdims=True) + roots.mean()
    return centered[np.triu_indices(len(centered))]


def test_the_vector_of_the_fixture() -> None:
    expected = [
        -0.966801,
        0.699824,
        -0.295171,
        0.562148,
        -0.883710,
        0.469687,
        -0.285801,
        -0.522635,
        0.348119,
        -0.624467,
    ]
    batch, _ = fixture("M")
    np.testing.assert_allclose(bdc_vector(batch.query[0, 0].flatten(1).numpy(), math.log(1 / 4)), expected, atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), one_shot=st.booleans(), held=st.sampled_from([1, 2**24]))
def test_agrees_with_the_vectors(seed: int, one_shot: bool, held: int) -> None:
    batch = as_maps(draw(seed, tasks=1, queries=3, shots=(1, 1, 1) if one_shot else (2, 1, 3), d=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distance_covariance, "CHUNK_SIZE", held)
        scores = DeepBdc(t=-1).scores(*batch)[0]
    support, query = (
        np.stack([bdc_vector(m, -1) for m in maps[0].flatten(2).numpy()]) for maps in (batch.support, batch.query)
    )
    for c in range(batch.way):
        mean = support[batch.labels[0].numpy() == c].mean(0)
        expected = query @ mean if one_shot else -((query - mean) ** 2).sum(1)
        np.testing.assert_allclose(scores[:, c], expected, rtol=1e-9, atol=1e-9)


def test_a_constant_added_to_all_channels_of_a_location_changes_nothing() -> None:
    batch = as_maps(draw())
    moved = batch._replace(query=batch.query + torch.randn(2, 2, generator=torch.Generator().manual_seed(0)).double())
    torch.testing.assert_close(DeepBdc().scores(*moved), DeepBdc().scores(*batch))
