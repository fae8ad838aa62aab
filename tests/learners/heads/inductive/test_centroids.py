from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.neighbors import NearestCentroid as ReferenceCentroid
from torch.nn.functional import cosine_similarity, normalize

from shotproof.core.errors import InputError
from shotproof.learners.heads.inductive.centroids import (
    CosineCentroid,
    DiffKendall,
    HelaVfa,
    NearestCentroid,
    SimpleShot,
)
from shotproof.learners.method import make_method
from tests.drawn_tasks import draw


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), shots=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_agrees_with_scikit_learn(seed: int, shots: list[int]) -> None:
    batch = draw(seed, tasks=1, shots=(2, *shots))
    reference = ReferenceCentroid().fit(batch.support[0].numpy(), batch.labels[0].numpy())
    predicted = NearestCentroid().scores(*batch)[0].argmax(-1)
    assert predicted.tolist() == reference.predict(batch.query[0].numpy()).tolist()


def test_a_common_offset_changes_nothing_even_where_it_dwarfs_the_distances() -> None:
    batch = draw(seed=3)
    moved = batch._replace(support=batch.support + 3000.0, query=batch.query + 3000.0)
    torch.testing.assert_close(NearestCentroid().scores(*moved), NearestCentroid().scores(*batch), rtol=1e-5, atol=1e-5)


def test_a_query_on_a_centroid_is_at_distance_zero() -> None:
    batch = draw(tasks=1, shots=(1, 1, 1))
    scores = NearestCentroid().scores(*batch._replace(query=batch.support))
    assert scores[0, torch.arange(3), batch.labels[0]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("rows", ["unit", "raw"])
def test_agrees_with_centroids_made_from_the_features(rows: str) -> None:
    batch = draw(tasks=3)
    support = normalize(batch.support, dim=-1) if rows == "unit" else batch.support
    for task in range(3):
        centroids = torch.stack([support[task, batch.labels[task] == c].mean(0) for c in range(batch.way)])
        expected = cosine_similarity(batch.query[task].unsqueeze(1), centroids.unsqueeze(0), dim=-1)
        scores = CosineCentroid(rows).scores(*batch)  # type: ignore[arg-type]
        torch.testing.assert_close(scores[task], expected)


def test_the_length_of_a_row_does_not_matter_where_rows_are_scaled() -> None:
    batch = draw()
    longer = batch._replace(support=batch.support.clone(), query=7 * batch.query)
    longer.support[:, 0] *= 100
    torch.testing.assert_close(CosineCentroid().scores(*longer), CosineCentroid().scores(*batch))
    assert not torch.allclose(CosineCentroid("raw").scores(*longer), CosineCentroid("raw").scores(*batch))


@pytest.mark.parametrize("rows", ["unit", "raw"])
def test_rows_that_cancel_have_no_direction(rows: str) -> None:
    row = draw(tasks=1).support[:, :1]
    support = torch.cat([row, -row, torch.ones_like(row)], dim=1)
    scores = CosineCentroid(rows).scores(support, torch.tensor([[0, 0, 1]]), row, 2)  # type: ignore[arg-type]
    assert scores[0, 0, 0] == 0


def test_it_is_the_nearest_centroid_of_rows_of_length_1() -> None:
    batch = draw()
    unit = batch._replace(support=normalize(batch.support, dim=-1), query=normalize(batch.query, dim=-1))
    torch.testing.assert_close(SimpleShot().scores(*batch), NearestCentroid().scores(*unit))


def test_with_one_shot_it_ranks_as_the_cosine_does() -> None:
    batch = draw(shots=(1, 1, 1))
    order = [method.scores(*batch).argsort(-1) for method in (SimpleShot(), CosineCentroid())]
    assert torch.equal(*order)


def test_the_way_to_cl2n_is_told() -> None:
    with pytest.raises(InputError, match=r"form: CL2N is L2N on centered features: .* transform center"):
        make_method("simpleshot(form='CL2N')")


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


def test_agrees_with_the_expanded_tensors_of_its_definition() -> None:
    batch = draw(tasks=2)
    for task in range(2):
        rows, labels = batch.support[task].numpy(), batch.labels[task].numpy()
        prototypes = np.stack([rows[labels == c].mean(0) for c in range(batch.way)])
        query = batch.query[task].numpy()
        shape = (len(query), batch.way, query.shape[1])
        left, right = np.broadcast_to(query[:, None], shape), np.broadcast_to(prototypes[None], shape)
        curves = [
            values.mean() + np.exp(-((values - values.mean()) ** 2) / (2 * values.var(ddof=1))) / math.sqrt(2 * math.pi)
            for values in (left, right)
        ]
        expected = -((np.sqrt(np.abs(curves[0])) - np.sqrt(np.abs(curves[1]))) ** 2).sum(-1) / math.sqrt(2)
        np.testing.assert_allclose(HelaVfa().scores(*batch)[task], expected)
