from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from shotproof.core.errors import InputError
from shotproof.methods.heads.inductive.cosine import CosineCentroid
from shotproof.methods.heads.inductive.ncc import NearestCentroid
from shotproof.methods.heads.inductive.simpleshot import SimpleShot
from shotproof.methods.method import make_method
from tests.drawn_tasks import draw


def test_it_is_the_nearest_centroid_of_rows_of_length_1() -> None:
    batch = draw()
    unit = batch._replace(support=normalize(batch.support, dim=-1), query=normalize(batch.query, dim=-1))
    torch.testing.assert_close(SimpleShot().scores(*batch), NearestCentroid().scores(*unit))


def test_with_one_shot_it_ranks_as_the_cosine_does() -> None:
    batch = draw(shots=(1, 1, 1))
    order = [method.scores(*batch).argsort(-1) for method in (SimpleShot(), CosineCentroid())]
    assert torch.equal(*order)


def test_the_way_to_cl2n_is_told() -> None:
    with pytest.raises(InputError, match=r"form: CL2N is L2N on centered features: give the transform center"):
        make_method("simpleshot(form='CL2N')")
