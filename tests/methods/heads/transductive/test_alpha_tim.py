from __future__ import annotations

import pytest
import torch
from benchmarks.plain_heads import tsallis

from shotproof.core.errors import InputError
from shotproof.methods.heads.transductive.alpha_tim import tsallis_slope
from shotproof.methods.method import make_method
from tests.fixture_rows import fixture


def test_the_entropies_at_the_start_are_the_published_ones() -> None:
    batch, _ = fixture("S")
    p = make_method("alpha-tim(steps=0)").scores(*batch)[0].exp()
    assert tsallis(p.mean(0), 7).item() == pytest.approx(0.166436, abs=1e-6)
    assert tsallis(p, 7).mean().item() == pytest.approx(0.055191, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 7.0])
def test_the_slope_is_that_of_the_entropy(alpha: float) -> None:
    p = torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]], dtype=torch.float64, requires_grad=True)
    tsallis(p, alpha).sum().backward()
    torch.testing.assert_close(tsallis_slope(p.detach(), alpha), p.grad)


def test_shannons_entropy_is_referred_to_tim() -> None:
    with pytest.raises(InputError, match="marginal_alpha: expected a number other than 1"):
        make_method("alpha-tim(marginal_alpha=1)")
