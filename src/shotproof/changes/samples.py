"""Arithmetic on samples that several changes of sounds share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shotproof.media.clip import Samples
from shotproof.media.mixture import FULL_SCALE, PEAK, from_pcm

Floats = npt.NDArray[np.float64]


def rms(values: Floats) -> float:
    """Return the root of the mean square; 0 if there are no values."""
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else 0.0


def to_rms(values: Floats, level: float) -> Floats:
    """Scale to a root mean square; silence stays silent."""
    current = rms(values)
    return values * (level / current) if current else values


def to_samples(values: Floats) -> Samples:
    """Convert to samples as files hold them: 16 bits, and values beyond full scale are clipped."""
    pcm = np.rint(values * FULL_SCALE).clip(-FULL_SCALE, FULL_SCALE - 1)
    return from_pcm(pcm.astype(np.int16))


def fitted(values: Floats) -> Samples:
    """Convert to samples like `to_samples`; what would be clipped is scaled to a full-scale peak, as in mixtures."""
    highest = float(np.abs(values).max(initial=0))
    return to_samples(values * min(1.0, PEAK / highest) if highest else values)
