"""Loudness of sounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shotproof.changes.change import SoundChange
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.samples import to_samples
from shotproof.core.options import option
from shotproof.media.clip import RATE, Samples

_QUIETER_DB = (6, 12, 18, 24, 30)
_LOUDER_DB = (4, 8, 12, 16, 20)


@dataclass(frozen=True)
class Gain(SoundChange):
    """Quieter by 6, 12, 18, 24 or 30 dB, or louder by 4, 8, 12, 16 or 20 dB and clipped at full scale."""

    about = "quieter by 6 to 30 dB, or louder by 4 to 20 dB and clipped at full scale"

    style: Literal["quieter", "louder"] = option("quieter", "what becomes of the loudness")

    def apply(self, samples: Samples, draws: ItemDraws, rate: int = RATE) -> Samples:
        """Multiply the sound by a gain."""
        level = self.severity - 1
        gain_db = -_QUIETER_DB[level] if self.style == "quieter" else _LOUDER_DB[level]
        return to_samples(samples.astype(np.float64) * 10 ** (gain_db / 20))
