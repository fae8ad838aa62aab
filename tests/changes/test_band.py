from __future__ import annotations

import numpy as np
import pytest

from shotproof.media.clip import RATE
from tests.changes.every_change import apply

CUTOFFS = {
    "low-pass": [(0, 6000), (0, 4000), (0, 2500), (0, 1500), (0, 800)],
    "high-pass": [(150, 8000), (300, 8000), (600, 8000), (1200, 8000), (2400, 8000)],
    "telephone": [(150, 5000), (200, 4000), (300, 3400), (450, 2600), (600, 1800)],
}


def sine(hertz: float) -> np.ndarray:
    return (0.4 * np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)).astype(np.float32)


@pytest.mark.parametrize("style", CUTOFFS)
@pytest.mark.parametrize("severity", range(1, 6))
def test_tones_inside_the_band_stay_and_others_go(style: str, severity: int) -> None:
    lowest, highest = CUTOFFS[style][severity - 1]
    for hertz in (40, 90, 250, 500, 1000, 1300, 2000, 3000, 5500, 7500, *{lowest, highest} - {0, 8000}):
        tone = sine(hertz)
        changed = apply(f"band(style='{style}')", severity, tone)
        middle = slice(RATE // 4, 3 * RATE // 4)
        kept = np.std(changed[middle]) / np.std(tone[middle])
        if (lowest == 0 or hertz > 1.8 * lowest) and (highest == 8000 or hertz < highest / 1.8):
            np.testing.assert_allclose(changed[middle], tone[middle], atol=0.03)  # in phase too
        if hertz < lowest / 1.5 or (hertz > highest * 1.5):
            assert kept < 0.06
        if hertz in (lowest, highest):
            assert kept == pytest.approx(0.5, abs=0.02)  # 3 dB for each direction of the filter
