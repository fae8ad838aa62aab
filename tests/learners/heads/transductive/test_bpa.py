from __future__ import annotations

import pytest
import torch

from shotproof.core.errors import InputError
from shotproof.functional.feature_rows import UnitRows
from shotproof.learners.heads.inductive.kernels import RidgeRegression
from shotproof.learners.heads.transductive.bpa import Bpa, balanced_affinities
from shotproof.learners.method import make_method
from tests.drawn_tasks import draw
from tests.fixture_rows import fixture


def affinities(regularization: float = 0.1, steps: int = 10) -> torch.Tensor:
    batch, _ = fixture("S")
    rows = UnitRows()(torch.cat([batch.support, batch.query], 1))
    return balanced_affinities(rows @ rows.mT, regularization, steps)


def test_the_affinities_are_the_published_ones() -> None:
    published = [0.006621, 0.000809, 0.000003, 0.007017, 0.000000, 0.012250]
    assert affinities()[0, 6, :6].tolist() == pytest.approx(published, abs=1e-6)
    assert affinities()[0, 6, 7].item() == pytest.approx(0.000336, abs=1e-6)


def test_the_affinities_become_symmetric() -> None:
    found = affinities(steps=200)
    torch.testing.assert_close(found, found.mT, atol=1e-6, rtol=0)
    sums = found.sum(1)
    torch.testing.assert_close(sums, sums.mean().expand_as(sums), rtol=1e-6, atol=0)


def test_a_small_regularization_gives_numbers() -> None:
    assert affinities(regularization=1e-4).isfinite().all()


def test_the_length_of_rows_does_not_matter() -> None:
    batch, method = draw(), make_method("bpa")
    longer = batch._replace(support=3 * batch.support, query=batch.query * torch.arange(1.0, 10.0)[:, None])
    torch.testing.assert_close(method.scores(*longer), method.scores(*batch))


@pytest.mark.parametrize("head", ["logistic(C=10)", "pt-map(steps=2)", "linear(epochs=2)", "bpa(head='knn')"])
def test_it_combines_with_any_head(head: str) -> None:
    batch = draw(tasks=3)
    scores = make_method(f'bpa(head="{head}")').scores(*batch)
    assert scores.shape == (3, batch.query.shape[1], batch.way)
    assert scores.isfinite().all()


def test_its_head_may_be_an_object() -> None:
    assert Bpa(head=RidgeRegression(penalty=2)) == make_method("bpa(head='ridge(penalty=2)')")  # type: ignore[arg-type]


def test_it_assumes_what_its_head_assumes() -> None:
    assert not make_method("bpa").balanced
    assert make_method("bpa(head='ecpe')").balanced


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bpa(head='nccc')", "unknown method 'nccc': did you mean 'ncc'"),
        ("bpa(head='dn4')", "head: expected a method on vectors, found 'dn4', .*maps"),
        ("bpa(regularisation=0)", "no option 'regularisation': did you mean 'regularization'"),
    ],
)
def test_bad_options_are_explained(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_method(spec)
