from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cosine_similarity, normalize

from shotproof.methods.heads.inductive.cosine import CosineCentroid
from tests.drawn_tasks import draw


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
