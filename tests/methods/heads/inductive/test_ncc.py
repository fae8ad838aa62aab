from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestCentroid as ReferenceCentroid

from shotproof.methods.heads.inductive.ncc import NearestCentroid
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
