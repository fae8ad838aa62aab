from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from shotproof.core.errors import InputError
from shotproof.methods.heads.inductive.cosine import CosineCentroid
from shotproof.methods.heads.inductive.knn import NearestNeighbors
from tests.drawn_tasks import draw, formula


def test_the_predictions_of_the_fixture() -> None:
    batch, _ = formula()
    assert NearestNeighbors().scores(*batch)[0].argmax(-1).tolist() == [0, 0, 0, 0, 1, 1, 2, 1, 2, 2, 0, 2]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 7))
def test_agrees_with_scikit_learn_where_the_vote_decides(seed: int, k: int) -> None:
    batch = draw(seed, tasks=1)
    reference = KNeighborsClassifier(k, metric="cosine").fit(batch.support[0].numpy(), batch.labels[0].numpy())
    votes = reference.predict_proba(batch.query[0].numpy())
    decided = (votes == votes.max(1, keepdims=True)).sum(1) == 1
    predicted = NearestNeighbors(k).scores(*batch)[0].argmax(-1).numpy()
    np.testing.assert_array_equal(predicted[decided], votes.argmax(1)[decided])


def test_equal_votes_are_decided_by_summed_similarity() -> None:
    support = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.1], [0.1, 1.0]]])
    labels = torch.tensor([[0, 1, 0, 1]])
    query = torch.tensor([[[1.0, 0.2], [0.2, 1.0]]])
    assert NearestNeighbors(4).scores(support, labels, query, 2).argmax(-1).tolist() == [[1, 1]]
    assert NearestNeighbors(1).scores(support, labels, query, 2).argmax(-1).tolist() == [[0, 1]]


def test_one_shot_is_the_cosine_centroid() -> None:
    batch = draw(shots=(1, 1, 1, 1, 1), queries=40)
    assert torch.equal(NearestNeighbors().scores(*batch).argmax(-1), CosineCentroid().scores(*batch).argmax(-1))


def test_copies_of_one_item_in_two_classes_go_to_the_lowest_class() -> None:
    batch = draw(tasks=1, shots=(1, 1, 1, 1))
    copies = batch.support[:, :1] * torch.tensor([3.0, 1.0, 7.0, 1.3]).double()[None, :, None]
    assert NearestNeighbors().scores(copies, batch.labels, batch.query, 4).argmax(-1).unique().tolist() == [0]


def test_more_neighbors_than_support_items_are_refused() -> None:
    with pytest.raises(InputError, match="k is 11, but a task has only 10 support items"):
        NearestNeighbors(11).scores(*draw())
