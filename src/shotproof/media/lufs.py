"""Integrated loudness of samples (EBU R 128, ITU-R BS.1770)."""

from __future__ import annotations

import functools
import hashlib
import math
import warnings
from typing import Any

import numpy as np

from shotproof.core.errors import MissingExtra
from shotproof.media.clip import RATE, Samples, resampled

# The standard's filters are made for this rate. At a lower one they are a little off, and a block that then falls on
# the other side of the gate moves the loudness of a recording by up to a decibel.
METER_RATE = 48_000
_MOST_MEASURED = 100_000
_measured: dict[tuple[bytes, int], float] = {}  # loudness by digest and rate


def integrated_loudness(samples: Samples, rate: int = RATE) -> float:
    """Measure one channel, [n], in LUFS; minus infinity if no block of 0.4 s is above the gate of -70 LUFS.

    Measuring takes ten times as long as digesting, and mixtures share their backgrounds: the same samples are measured
    once.
    """
    key = (hashlib.blake2b(np.ascontiguousarray(samples).data, digest_size=16).digest(), rate)
    if key not in _measured:
        if len(_measured) >= _MOST_MEASURED:
            _measured.clear()
        _measured[key] = _measure(samples, rate)
    return _measured[key]


def _measure(samples: Samples, rate: int) -> float:
    meter, resampled_samples = _meter(), resampled(samples, rate, METER_RATE)
    if len(resampled_samples) < meter.block_size * METER_RATE:
        return -math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the mean over no block
        with np.errstate(all="ignore"):
            lufs = float(meter.integrated_loudness(resampled_samples))
    return lufs if math.isfinite(lufs) else -math.inf


@functools.cache
def _meter() -> Any:
    """Build the meter, once per process."""
    try:
        import pyloudnorm
    except ImportError as error:
        raise MissingExtra("measuring loudness", "sound") from error
    return pyloudnorm.Meter(METER_RATE)
