from __future__ import annotations

import numpy as np
import pytest

from shotproof.media.clip import RATE
from shotproof.media.lufs import integrated_loudness
from tests.meter import lufs


def test_the_same_array_with_other_samples_is_measured_again() -> None:
    samples = np.random.default_rng(0).normal(0, 0.1, 2 * RATE).astype(np.float32)
    loud = integrated_loudness(samples)
    assert loud == pytest.approx(lufs(samples), abs=0.1)
    assert integrated_loudness(samples.copy()) == loud
    samples *= 0.5
    assert integrated_loudness(samples) == pytest.approx(loud - 20 * np.log10(2), abs=0.01)


def test_the_same_samples_at_another_rate_are_another_sound() -> None:
    seconds = np.arange(2 * RATE) / RATE
    samples = np.sin(2 * np.pi * 60 * seconds).astype(np.float32)  # higher tones are weighted more
    assert integrated_loudness(samples, 2 * RATE) > integrated_loudness(samples, RATE) + 1
