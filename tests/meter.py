"""A loudness meter of the tests' own, from the text of ITU-R BS.1770: its printed filters, at its rate of 48 kHz."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter, resample_poly

STAGES = (
    ([1.53512485958697, -2.69169618940638, 1.19839281085285], [1.0, -1.69065929318241, 0.73248077421585]),
    ([1.0, -2.0, 1.0], [1.0, -1.99004745483398, 0.99007225036621]),
)


def lufs(samples: npt.NDArray[np.floating], rate: int = 16_000) -> float:
    """Integrated loudness of one channel, [n]."""
    weighted = resample_poly(np.asarray(samples, dtype=np.float64), 48_000 // rate, 1)
    for numerator, denominator in STAGES:
        weighted = lfilter(numerator, denominator, weighted)
    block, step = round(0.4 * 48_000), round(0.1 * 48_000)
    starts = range(0, len(weighted) - block + 1, step)
    power = np.array([np.mean(weighted[start : start + block] ** 2) for start in starts])
    loud = power[-0.691 + 10 * np.log10(power + 1e-30) > -70]
    loud = loud[10 * np.log10(loud) > 10 * np.log10(loud.mean()) - 10]
    return float(-0.691 + 10 * np.log10(loud.mean()))
