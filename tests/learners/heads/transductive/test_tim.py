from __future__ import annotations

import re

import pytest
import torch
from benchmarks.plain_heads import tsallis

from shotproof.core.errors import InputError
from shotproof.learners.heads.transductive.tim import tsallis_gradient
from shotproof.learners.method import make_method
from tests.fixture_rows import fixture


def test_the_loss_at_the_start_is_the_published_one() -> None:
    batch, _ = fixture("S")
    start = make_method("tim(steps=0)")
    p = start.scores(*batch)[0].exp()
    of_support = start.scores(batch.support, batch.labels, batch.support, batch.way)[0]
    cross_entropy = -of_support.gather(1, batch.labels[0].unsqueeze(1)).mean()
    assert cross_entropy.item() == pytest.approx(0.132781, abs=1e-6)
    assert torch.special.entr(p.mean(0)).sum().item() == pytest.approx(1.098426, abs=1e-6)
    assert torch.special.entr(p).sum(1).mean().item() == pytest.approx(0.244668, abs=1e-6)


def test_without_information_it_is_the_nearest_centroid() -> None:
    batch, _ = fixture("S")
    support, query = (torch.nn.functional.normalize(rows, dim=-1) for rows in (batch.support, batch.query))
    nearest = make_method("ncc").scores(support, batch.labels, query, batch.way)
    expected = (7.5 * nearest).log_softmax(-1)
    found = make_method("tim(steps=1, rate=1e-12, weights=(0.1, 0, 0))").scores(*batch)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tim(weights=1)", "weights: expected 3 numbers of at least 0, found 1"),
        ("tim(weights=(1, 1, -1))", "weights: expected 3 numbers of at least 0, found (1, 1, -1)"),
        ("tim(temprature=15)", "no option 'temprature': did you mean 'temperature'"),
    ],
)
def test_bad_options_are_explained(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        make_method(spec)


def test_the_entropies_at_the_start_are_the_published_ones() -> None:
    batch, _ = fixture("S")
    p = make_method("alpha-tim(steps=0)").scores(*batch)[0].exp()
    assert tsallis(p.mean(0), 7).item() == pytest.approx(0.166436, abs=1e-6)
    assert tsallis(p, 7).mean().item() == pytest.approx(0.055191, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 7.0])
def test_the_slope_is_that_of_the_entropy(alpha: float) -> None:
    p = torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]], dtype=torch.float64, requires_grad=True)
    tsallis(p, alpha).sum().backward()
    torch.testing.assert_close(tsallis_gradient(p.detach(), alpha), p.grad)


def test_shannons_entropy_is_referred_to_tim() -> None:
    with pytest.raises(InputError, match="marginal_alpha: expected a number other than 1"):
        make_method("alpha-tim(marginal_alpha=1)")
