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
_ORDER = 4  # of a Butterworth filter, which is applied forwards and backwards


@dataclass(frozen=True)
class Band(SoundChange):
    """Without its high frequencies, its low ones or both, as over the telephone; phases stay as they are."""

    about = "without high frequencies, low ones or both, as over the telephone"

    style: Literal["low-pass", "high-pass", "telephone"] = option("telephone", "which frequencies are left")

    def apply(self, samples: Samples, draws: ItemDraws) -> Samples:
        """Filter the sound."""
        from scipy.signal import butter, sosfiltfilt

        if not len(samples):
            return samples
        level = self.severity - 1
        if self.style == "low-pass":
            sections = butter(_ORDER, _LOW_PASS[level], "lowpass", fs=RATE, output="sos")
        elif self.style == "high-pass":
            sections = butter(_ORDER, _HIGH_PASS[level], "highpass", fs=RATE, output="sos")
        else:
            sections = butter(_ORDER, _TELEPHONE[level], "bandpass", fs=RATE, output="sos")
        border = min(3 * (2 * len(sections) + 1), len(samples) - 1)  # SciPy's, unless the sound is shorter
        return fitted(sosfiltfilt(sections, samples.astype(np.float64), padlen=border))
