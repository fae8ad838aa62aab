from __future__ import annotations

import numpy as np
import pytest

from shotproof.changes.samples import fitted, rms, to_rms, to_samples


def test_samples_are_those_of_16_bits() -> None:
    values = np.array([0.0, 1 / 3, -1.0, -7.0, 1.0, 2.0])
    expected = np.array([0, 10923, -32768, -32768, 32767, 32767]) / 32768
    np.testing.assert_array_equal(to_samples(values), expected.astype(np.float32))


def test_what_would_be_clipped_is_scaled() -> None:
    values = np.array([0.25, -0.5, 2.0])
    np.testing.assert_allclose(fitted(values), values / 2, atol=1e-4)
    np.testing.assert_array_equal(fitted(values / 4), to_samples(values / 4))
    assert not fitted(np.zeros(3)).any()
    assert len(fitted(np.zeros(0))) == 0


def test_a_root_mean_square_is_reached_but_by_silence() -> None:
    assert rms(np.array([3.0, -4.0])) == pytest.approx(12.5**0.5)
    assert rms(to_rms(np.array([3.0, -4.0]), 0.1)) == pytest.approx(0.1)
    assert not to_rms(np.zeros(4), 0.1).any()
    assert rms(np.zeros(0)) == 0
