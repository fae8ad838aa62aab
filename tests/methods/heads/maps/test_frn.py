from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.methods.heads.maps.frn import FeatureMapReconstruction
from tests.drawn_tasks import as_maps, draw


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
