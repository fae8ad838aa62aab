from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from shotproof.methods.heads.inductive.diffkendall import DiffKendall
from tests.drawn_tasks import draw


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(2, 30))
def test_agrees_with_scipy_where_nothing_ties(seed: int, d: int) -> None:
    batch = draw(seed, tasks=1, shots=(1, 1, 1), queries=2, d=d)
    scores = DiffKendall().scores(*batch)[0]
    for query in range(2):
        for row, label in enumerate(batch.labels[0].tolist()):
            expected = kendalltau(batch.query[0, query].numpy(), batch.support[0, row].numpy()).statistic
            assert scores[query, label].item() == pytest.approx(expected)


def test_ties_count_nothing() -> None:
    query, support = (
        torch.tensor([[[0.0, 0.0, 1.0, 2.0]]]),
        torch.tensor([[[0.0, 1.0, 2.0, 2.0], [3.0, 2.0, 1.0, 0.0]]]),
    )
    scores = DiffKendall().scores(support, torch.tensor([[0, 1]]), query, 2)
    torch.testing.assert_close(scores[0, 0], torch.tensor([4 / 6, -5 / 6], dtype=torch.float64))


def test_only_the_order_of_the_channels_matters() -> None:
    batch = draw(shots=(1, 1, 1))
    changed = batch._replace(support=batch.support.exp(), query=batch.query**3)
    torch.testing.assert_close(DiffKendall().scores(*changed), DiffKendall().scores(*batch))


def test_the_smooth_form_becomes_the_ranks() -> None:
    batch = draw()
    steep = DiffKendall("smooth", beta=1e9, temperature=1.0).scores(*batch)
    np.testing.assert_allclose(steep, DiffKendall().scores(*batch), atol=1e-6)
