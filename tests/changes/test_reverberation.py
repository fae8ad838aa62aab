from __future__ import annotations

import numpy as np
import pytest

from shotproof.media.clip import RATE
from tests.changes.every_change import apply, voice
from tests.meter import lufs


@pytest.mark.parametrize(("severity", "rt60"), [(1, 0.2), (2, 0.4), (3, 0.8), (4, 1.4), (5, 2.2)])
def test_a_click_decays_by_60_db_in_its_time(severity: int, rt60: float) -> None:
    """Schroeder's backward integration, between 5 and 25 dB below the beginning of the tail."""
    click = np.zeros(3 * RATE, np.float32)
    click[0] = 0.99
    tail = apply("reverberation", severity, click).astype(float)[1:]
    energy = np.cumsum(tail[::-1] ** 2)[::-1]
    level = 10 * np.log10(energy / energy[0] + 1e-12)
    start, stop = np.argmax(level < -5), np.argmax(level < -25)
    assert 3 * (stop - start) / RATE == pytest.approx(rt60, rel=0.1)


@pytest.mark.parametrize("severity", range(1, 6))
def test_the_loudness_stays(severity: int) -> None:
    samples = voice(seconds=3.0)
    assert lufs(apply("reverberation", severity, samples)) == pytest.approx(lufs(samples), abs=1.0)


def test_a_longer_reverberation_has_more_energy_beside_the_direct_sound() -> None:
    click = np.zeros(3 * RATE, np.float32)
    click[0] = 0.99
    shares = []
    for severity in range(1, 6):
        response = apply("reverberation", severity, click).astype(float)
        shares.append(float(np.sum(response[1:] ** 2) / response[0] ** 2))
    np.testing.assert_allclose(shares, np.array([0.2, 0.4, 0.8, 1.4, 2.2]) / 0.5, rtol=0.02)
