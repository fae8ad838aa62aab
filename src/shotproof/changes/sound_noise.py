"""Noise in sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shotproof.changes.change import SoundChange
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.samples import Floats, fitted, rms, to_rms
from shotproof.core.options import option
from shotproof.media.clip import RATE, Samples

_SNR_DB = (20, 15, 10, 5, 0)
_LOWEST_PINK = 20.0  # Hz, below which pink noise does not rise further


@dataclass(frozen=True)
class SoundNoise(SoundChange):
    """White or pink noise at a signal-to-noise ratio of 20, 15, 10, 5 or 0 dB; silence stays silent."""

    about = "white or pink noise at 20 to 0 dB below the sound"

    style: Literal["white", "pink"] = option("white", "spectrum of the noise: flat, or falling by 3 dB per octave")

    def apply(self, samples: Samples, draws: ItemDraws, rate: int = RATE) -> Samples:
        """Add the noise."""
        sound, noise = samples.astype(np.float64), draws.normal(len(samples))
        if self.style == "pink":
            noise = _pink(noise, rate)
        return fitted(sound + to_rms(noise, rms(sound) * 10 ** (-_SNR_DB[self.severity - 1] / 20)))


def _pink(white: Floats, rate: int) -> Floats:
    """Filter white noise so that its power falls as 1 / frequency, [n]."""
    from scipy.fft import irfft, next_fast_len, rfft

    length = next_fast_len(max(1, len(white)), real=True)
    frequencies = np.fft.rfftfreq(length, 1 / rate)
    pink: Floats = irfft(rfft(white, length) / np.sqrt(np.maximum(frequencies, _LOWEST_PINK)), length)
    return pink[: len(white)]
