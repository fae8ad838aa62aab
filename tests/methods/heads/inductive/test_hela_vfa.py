from __future__ import annotations

import math

import numpy as np

from shotproof.methods.heads.inductive.hela_vfa import HelaVfa
from tests.drawn_tasks import draw


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
