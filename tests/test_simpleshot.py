from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from shotproof.errors import InputError
from shotproof.methods.cosine import CosineCentroid
from shotproof.methods.method import make_method
from shotproof.methods.ncc import NearestCentroid
from shotproof.methods.simpleshot import SimpleShot
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
    with pytest.raises(InputError, match=r"CL2N is L2N on centred features: give the transform center"):
        make_method("simpleshot(form='CL2N')")
    with pytest.raises(InputError, match="unknown form of simpleshot 'L2': did you mean 'L2N'"):
        make_method("simpleshot(form='L2')")
