from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.media.mixture import amplified, background_gain_db, from_pcm, mix_clips
from tests.drawn_clips import tone


@settings(max_examples=40, deadline=None)
@given(st.floats(-60, 60), st.floats(0.001, 1.0), st.integers(0, 5))
def test_no_sample_clips_and_the_parts_keep_their_ratio(gain_db: float, level: float, seed: int) -> None:
    front, back = np.float32(level) * tone(seed), amplified(tone(seed + 1), gain_db)
    pcm, scale = mix_clips(front, back)
    assert np.abs(pcm.astype(np.int32)).max() <= 32_767
    wanted = (front.astype(np.float64) + back.astype(np.float64)) * scale
    np.testing.assert_allclose(from_pcm(pcm), wanted, atol=0.51 / 32_768)
    would_clip = np.abs(front.astype(np.float64) + back.astype(np.float64)).max() > 32_767 / 32_768
    assert (scale < 1) == would_clip


@pytest.mark.parametrize("level", [0.01, 0.4, 3.0])
def test_always_brings_every_sum_to_full_scale(level: float) -> None:
    front, back = np.float32(level) * tone(0), np.float32(level / 3) * tone(1)
    pcm, scale = mix_clips(front, back, "always")
    assert np.abs(pcm.astype(np.int32)).max() == 32_767
    np.testing.assert_allclose(from_pcm(pcm), scale * (front + back), atol=0.51 / 32_768)
    assert mix_clips(np.zeros(9, dtype=np.float32), None, "always")[1] == 1


def test_silence_stays_silent() -> None:
    pcm, scale = mix_clips(np.zeros(100, dtype=np.float32), None)
    assert not pcm.any()
    assert scale == 1


def test_the_gain_is_that_of_the_equation() -> None:
    front, back = -23.0, -31.5
    for dial in (0.5, 1.0, 2.0):
        factor = dial * 10 ** ((front - back - 8.0) / 20)
        assert 10 ** (background_gain_db(front, back, 8.0, dial) / 20) == pytest.approx(factor, rel=1e-5)
    assert background_gain_db(front, back, dial=0.0) == -math.inf
    assert not amplified(tone(0), -math.inf).any()
