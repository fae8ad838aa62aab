from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.changes.every_change import apply

SIDE = 120


@pytest.mark.parametrize(("severity", "white"), [(1, 60), (2, 25), (3, 12), (4, 5), (5, 3)])
def test_shot_noise_is_poisson(severity: int, white: int) -> None:
    for value in (0, 1, 40, 128, 200):
        pixels = np.full((SIDE, SIDE, 3), value, np.uint8)
        photons = apply("noise(style='shot')", severity, pixels).ravel() / 255 * white
        mean = value / 255 * white
        counts = np.rint(photons)
        np.testing.assert_allclose(photons, counts, atol=0.5 * white / 255 + 1e-9)  # as 8 bits have them
        # What is brighter than white is clipped.
        expected = stats.poisson(mean)
        shares = np.append(expected.pmf(np.arange(white)), expected.sf(white - 1))
        observed = np.bincount(counts.astype(int), minlength=white + 1)
        assert len(observed) == white + 1
        np.testing.assert_allclose(observed / len(counts), shares, atol=4.5 * 0.5 / len(counts) ** 0.5)
        if expected.sf(white - 1) < 1e-6:
            assert counts.mean() == pytest.approx(mean, abs=4.5 * (mean / len(counts)) ** 0.5)
            assert counts.var() == pytest.approx(mean, rel=0.05 + 1 / white, abs=1e-12)


@pytest.mark.parametrize(("severity", "deviation"), [(1, 0.08), (2, 0.12), (3, 0.18)])
def test_gaussian_noise_has_its_deviation(severity: int, deviation: float) -> None:
    pixels = np.full((SIDE, SIDE, 3), 128, np.uint8)
    noise = (apply("noise(style='gaussian')", severity, pixels) - 128.0) / 255
    assert noise.mean() == pytest.approx(0, abs=4 * deviation / noise.size**0.5)
    # Clipping beyond black and white takes 2% of a deviation of 0.18.
    assert noise.std() == pytest.approx(deviation, rel=0.03)
    assert abs(np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]) < 0.04


@pytest.mark.parametrize(("severity", "share"), [(1, 0.03), (5, 0.27)])
def test_impulse_noise_is_black_or_white(severity: int, share: float) -> None:
    pixels = np.full((SIDE, SIDE, 3), 100, np.uint8)
    changed = apply("noise(style='impulse')", severity, pixels)
    assert set(np.unique(changed).tolist()) == {0, 100, 255}
    assert (changed != 100).mean() == pytest.approx(share, abs=0.01)
    assert (changed == 255).sum() / (changed != 100).sum() == pytest.approx(0.5, abs=0.06)


def test_a_stronger_noise_moves_the_same_values_the_same_way() -> None:
    pixels = np.full((30, 30, 3), 128, np.uint8)
    weak, strong = (apply("noise", severity, pixels).astype(int) - 128 for severity in (1, 3))
    assert (np.abs(strong) >= np.abs(weak)).all()
    assert (weak * strong >= 0).all()
