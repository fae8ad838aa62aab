from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.core.errors import InputError
from shotproof.methods.heads.maps.mcl import MutualCentralizedLearning
from shotproof.methods.method import make_method
from tests.drawn_tasks import as_maps, draw


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
