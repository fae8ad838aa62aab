"""Reverberation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shotproof.changes.change import SoundChange
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.samples import Floats, fitted, rms, to_rms
from shotproof.media.clip import RATE, Samples

_RT60 = (0.2, 0.4, 0.8, 1.4, 2.2)  # seconds in which the reverberation falls by 60 dB
_EQUAL_RT60 = 0.5  # seconds at which the reverberation has as much energy as the direct sound


@dataclass(frozen=True)
class Reverberation(SoundChange):
    """A room with a reverberation time (RT60) of 0.2, 0.4, 0.8, 1.4 or 2.2 seconds; the loudness stays.

    The impulse response is the direct sound, followed by exponentially decaying noise whose energy grows with the
    reverberation time, as it does in rooms of the same size.
    """

    about = "the reverberation of a room, with an RT60 of 0.2 to 2.2 s"

    def apply(self, samples: Samples, draws: ItemDraws, rate: int = RATE) -> Samples:
        """Add the reverberation of a room."""
        from scipy.signal import fftconvolve

        sound = samples.astype(np.float64)
        reverberant = fftconvolve(sound, _response(_RT60[self.severity - 1], draws, rate))[: len(sound)]
        return fitted(to_rms(reverberant, rms(sound)))


def _response(rt60: float, draws: ItemDraws, rate: int) -> Floats:
    """Draw the impulse response of a room; rooms of the same item differ only in how fast the noise decays."""
    noise = draws.normal(math.ceil(rt60 * rate))
    tail = noise * 10 ** (-3 * np.arange(len(noise)) / (rt60 * rate))
    return np.concatenate([[1.0], tail * math.sqrt(rt60 / _EQUAL_RT60 / np.sum(tail**2))])
