from __future__ import annotations

import numpy as np
import pytest

from tests.changes.every_change import apply, voice


@pytest.mark.parametrize(("severity", "share"), [(1, 0.02), (2, 0.05), (3, 0.1), (4, 0.2), (5, 0.4)])
def test_its_share_of_samples_is_at_the_peak_which_stays(severity: int, share: float) -> None:
    samples = voice()
    samples[:4000] = 0  # what is silent is not counted
    changed = apply("clipping", severity, samples)
    peak = np.abs(changed).max()
    assert peak == pytest.approx(np.abs(samples).max(), abs=1 / 32768)
    is_clipped = np.abs(changed) == peak
    assert is_clipped.sum() / (samples != 0).sum() == pytest.approx(share, abs=0.005)
    ratio = changed[~is_clipped & (np.abs(samples) > 0.05)] / samples[~is_clipped & (np.abs(samples) > 0.05)]
    if len(ratio):
        assert np.ptp(ratio) < 0.01 * ratio.mean()
