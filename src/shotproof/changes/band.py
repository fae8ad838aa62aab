"""Band limits of sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shotproof.changes.change import SoundChange
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.samples import fitted
from shotproof.core.options import option
from shotproof.media.clip import RATE, Samples

# Hz
_LOW_PASS = (6000, 4000, 2500, 1500, 800)
_HIGH_PASS = (150, 300, 600, 1200, 2400)
_TELEPHONE = ((150, 5000), (200, 4000), (300, 3400), (450, 2600), (600, 1800))  # severity 3: narrow-band telephony
_MOST_OF_RATE = (0.4, 0.45)  # of limits from below and from above, as shares of the sampling rate
_ORDER = 4  # of a Butterworth filter, which is applied forwards and backwards


@dataclass(frozen=True)
class Band(SoundChange):
    """Without its high frequencies, its low ones or both, as over the telephone; phases stay as they are."""

    about = "without high frequencies, low ones or both, as over the telephone"

    style: Literal["low-pass", "high-pass", "telephone"] = option("telephone", "which frequencies are left")

    def apply(self, samples: Samples, draws: ItemDraws, rate: int = RATE) -> Samples:
        """Filter the sound."""
        from scipy.signal import butter, sosfiltfilt

        if not len(samples):
            return samples
        level = self.severity - 1
        # A sound at a low rate has no frequencies near some of the limits, and a filter must be below half the rate.
        lowest, highest = _MOST_OF_RATE[0] * rate, _MOST_OF_RATE[1] * rate
        if self.style == "low-pass":
            sections = butter(_ORDER, min(_LOW_PASS[level], highest), "lowpass", fs=rate, output="sos")
        elif self.style == "high-pass":
            sections = butter(_ORDER, min(_HIGH_PASS[level], lowest), "highpass", fs=rate, output="sos")
        else:
            low, high = _TELEPHONE[level]
            sections = butter(_ORDER, (min(low, lowest), min(high, highest)), "bandpass", fs=rate, output="sos")
        border = min(3 * (2 * len(sections) + 1), len(samples) - 1)  # SciPy's, unless the sound is shorter
        return fitted(sosfiltfilt(sections, samples.astype(np.float64), padlen=border))
