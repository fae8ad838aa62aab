"""Speed of sounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shotproof.changes.change import SoundChange
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.samples import fitted
from shotproof.media.clip import RATE, Samples, fixed_length, resampled

_FACTOR = ((11, 10), (6, 5), (4, 3), (8, 5), (2, 1))  # as fractions


@dataclass(frozen=True)
class Speed(SoundChange):
    """Played 1.1, 1.2, 1.33, 1.6 or 2 times as fast, so that it is higher too; repeated to the length it had."""

    about = "1.1 to 2 times as fast and higher in pitch, looped to its length"

    def apply(self, samples: Samples, draws: ItemDraws, rate: int = RATE) -> Samples:
        """Make the sound faster."""
        numerator, denominator = _FACTOR[self.severity - 1]
        faster = resampled(samples, numerator, denominator)
        return fitted(fixed_length(faster, len(samples)).astype(np.float64))
