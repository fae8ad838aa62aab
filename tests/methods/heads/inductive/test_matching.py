from __future__ import annotations

import torch

from shotproof.methods.heads.inductive.knn import NearestNeighbors
from shotproof.methods.heads.inductive.matching import Matching
from shotproof.models.scoring.attention import LEAST
from tests.drawn_tasks import draw


def test_the_attention_is_shared_out() -> None:
    shares = Matching().scores(*draw()).exp() - LEAST
    torch.testing.assert_close(shares.sum(-1), torch.ones(8, 9, dtype=torch.float64))


def test_sharp_attention_is_the_nearest_neighbor() -> None:
    batch = draw()
    assert torch.equal(Matching(1e6).scores(*batch).argmax(-1), NearestNeighbors().scores(*batch).argmax(-1))


def test_opposite_rows_get_the_same_attention_as_unrelated_ones() -> None:
    support = torch.tensor([[[-1.0, 0.0], [0.0, 1.0], [-1.0, 0.1]]])
    scores = Matching().scores(support, torch.tensor([[0, 1, 2]]), torch.tensor([[[1.0, 0.0]]]), 3)
    torch.testing.assert_close(scores, scores[..., :1].expand_as(scores))
