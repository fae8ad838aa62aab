from __future__ import annotations

import numpy as np
import pytest

from tests.changes.every_change import apply, voice


@pytest.mark.parametrize(("severity", "decibels"), [(1, 6), (2, 12), (3, 18), (4, 24), (5, 30)])
def test_quieter_divides(severity: int, decibels: float) -> None:
    changed = apply("gain", severity, voice())
    np.testing.assert_allclose(changed, voice() * 10 ** (-decibels / 20), atol=0.51 / 32768)


@pytest.mark.parametrize(("severity", "decibels"), [(1, 4), (2, 8), (3, 12), (4, 16), (5, 20)])
def test_louder_multiplies_and_clips_at_full_scale(severity: int, decibels: float) -> None:
    changed = apply("gain(style='louder')", severity, voice())
    wanted = (voice() * 10 ** (decibels / 20)).clip(-1, 32767 / 32768)
    np.testing.assert_allclose(changed, wanted, atol=0.51 / 32768)
    assert (np.abs(changed) > 0.999).any() == (severity >= 2)
