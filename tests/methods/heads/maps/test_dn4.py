from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity, one_hot

from shotproof.methods.heads.inductive.cosine import CosineCentroid
from shotproof.methods.heads.maps.dn4 import Dn4, GlobalDn4
from shotproof.models.scoring import local_maps
from tests.drawn_tasks import as_maps, draw


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 9), chunk=st.sampled_from([1, 2**24]))
def test_agrees_with_a_loop_over_classes(seed: int, k: int, chunk: int) -> None:
    batch = as_maps(draw(seed, tasks=2, queries=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_maps, "MOST_HELD", chunk)
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
    index, present = local_maps.rows_of_classes(given, 3)
    assert torch.equal(present.sum(-1), one_hot(given, 3).sum(1))
    for c in range(3):
        assert index[0, c][present[0, c]].tolist() == (given[0] == c).nonzero().flatten().tolist()
