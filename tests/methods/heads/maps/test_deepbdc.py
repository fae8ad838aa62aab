from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.methods.heads.maps import deepbdc
from shotproof.methods.heads.maps.deepbdc import DeepBdc
from tests.drawn_tasks import as_maps, draw
from tests.fixture_rows import fixture


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
        patch.setattr(deepbdc, "MOST_HELD", held)
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
