from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import welch

from shotproof.media.clip import RATE
from tests.changes.every_change import apply, voice


@pytest.mark.parametrize("style", ["white", "pink"])
@pytest.mark.parametrize(("severity", "snr_db"), [(1, 20), (2, 15), (3, 10), (4, 5), (5, 0)])
def test_the_noise_is_as_loud_as_said(style: str, severity: int, snr_db: float) -> None:
    samples = 0.2 * voice()
    noise = apply(f"sound-noise(style='{style}')", severity, samples).astype(float) - samples
    assert 10 * np.log10(np.mean(samples.astype(float) ** 2) / np.mean(noise**2)) == pytest.approx(snr_db, abs=0.05)


@pytest.mark.parametrize(("style", "slope"), [("white", 0.0), ("pink", -1.0)])
def test_white_noise_is_flat_and_pink_noise_falls_by_3_db_per_octave(style: str, slope: float) -> None:
    samples = 0.2 * voice(seconds=4.0)
    noise = apply(f"sound-noise(style='{style}')", 5, samples).astype(float) - samples
    frequencies, power = welch(noise, RATE, nperseg=2048)
    band = (frequencies > 60) & (frequencies < 7000)
    fitted = np.polyfit(np.log(frequencies[band]), np.log(power[band]), 1, w=frequencies[band] ** -0.5)
    assert fitted[0] == pytest.approx(slope, abs=0.06)


def test_a_sum_beyond_full_scale_is_scaled_and_keeps_its_ratio() -> None:
    samples = np.sign(voice()).astype(np.float32)
    changed = apply("sound-noise", 3, samples).astype(float)
    assert np.abs(changed).max() == pytest.approx(1, abs=1e-4)
    scale = (changed @ samples) / (samples @ samples)
    assert scale < 0.95
    assert np.mean((changed / scale - samples) ** 2) == pytest.approx(0.1, rel=0.03)
