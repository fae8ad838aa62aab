from __future__ import annotations

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.learners.heads.transductive.rectified import neighbor_graph
from shotproof.learners.method import make_method
from tests.fixture_rows import fixture


def test_the_graph_has_the_nearest_others() -> None:
    rows = torch.randn(3, 9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows /= rows.norm(dim=-1, keepdim=True)
    for count in (1, 2, 8, 20):
        graph = neighbor_graph(rows @ rows.mT, count)
        for task in range(3):
            for query in range(9):
                others = [other for other in range(9) if other != query]
                nearest = sorted(others, key=lambda other: (rows[task, query] - rows[task, other]).norm().item())
                assert graph[task, :, query].nonzero().flatten().tolist() == sorted(nearest[:count])
    assert not neighbor_graph(rows @ rows.mT, 0).any()


@pytest.mark.parametrize(
    ("spec", "fixture_name", "strength", "published"),
    [
        ("laplacianshot", "C", 1.0, -16.418796),
        ("laplacianshot(strength=0.7, rectify=False)", "S", 0.7, -7.655417),
    ],
)
def test_the_energy_is_the_published_one(spec: str, fixture_name: str, strength: float, published: float) -> None:
    batch, _ = fixture(fixture_name)  # type: ignore[arg-type]
    answer = make_method(spec).scores(*batch)[0]
    start = make_method("bd-cspn(form='laplacianshot')").scores(*batch)[0]
    unit = torch.nn.functional.normalize(batch.query[0], dim=-1)
    if "rectify=False" in spec:
        support = torch.nn.functional.normalize(batch.support, dim=-1)
        start = make_method("ncc").scores(support, batch.labels, unit[None], batch.way)[0]
    graph = neighbor_graph((unit @ unit.T)[None], 2)[0].T
    energy = (answer * answer.log() - start * answer - strength * answer * (graph @ answer)).sum()
    assert energy.item() == pytest.approx(published, abs=1e-5)


def test_without_the_graph_it_is_a_softmax_of_distances() -> None:
    batch, _ = fixture("C")
    expected = make_method("bd-cspn(form='laplacianshot')").scores(*batch).softmax(-1)
    torch.testing.assert_close(make_method("laplacianshot(strength=0)").scores(*batch), expected)


def test_the_former_name_of_an_option_is_referred_to_the_new_one() -> None:
    with pytest.raises(InputError, match="no option 'neighbours': did you mean 'neighbors'"):
        make_method("laplacianshot(neighbours=2)")
