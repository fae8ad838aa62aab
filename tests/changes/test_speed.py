from __future__ import annotations

import numpy as np
import pytest

from shotproof.media.clip import RATE
from tests.changes.every_change import apply

FACTORS = [(1, 11 / 10), (2, 6 / 5), (3, 4 / 3), (4, 8 / 5), (5, 2.0)]


@pytest.mark.parametrize(("severity", "factor"), FACTORS)
def test_a_tone_becomes_higher_by_the_factor(severity: int, factor: float) -> None:
    samples = (0.4 * np.sin(2 * np.pi * 600 * np.arange(RATE) / RATE)).astype(np.float32)
    spectrum = np.abs(np.fft.rfft(apply("speed", severity, samples)))
    assert np.argmax(spectrum) == pytest.approx(600 * factor, abs=1.5)


@pytest.mark.parametrize(("severity", "factor"), FACTORS)
def test_it_is_over_sooner_and_begins_again(severity: int, factor: float) -> None:
    samples = np.zeros(RATE, np.float32)
    samples[1600:2400] = 0.5
    changed = apply("speed", severity, samples)
    period = RATE / factor
    onsets = np.flatnonzero((changed[1:] > 0.25) & (changed[:-1] <= 0.25))
    expected = np.arange(0, RATE, period) + 1600 / factor
    expected = expected[expected < RATE - 50]
    np.testing.assert_allclose(onsets, expected, atol=20)
