"""Clipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shotproof.changes.change import SoundChange
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.samples import to_samples
from shotproof.media.clip import RATE, Samples

_SHARE = (0.02, 0.05, 0.1, 0.2, 0.4)  # of the samples that are not silent


@dataclass(frozen=True)
class Clipping(SoundChange):
    """The loudest 2, 5, 10, 20 or 40% of samples clipped, and the peak brought back to where it was."""

    about = "the loudest 2 to 40% of samples clipped"

    def apply(self, samples: Samples, draws: ItemDraws, rate: int = RATE) -> Samples:
        """Clip the sound."""
        magnitudes = np.abs(samples[samples != 0]).astype(np.float64)
        if not len(magnitudes):
            return samples
        limit = np.quantile(magnitudes, 1 - _SHARE[self.severity - 1])
        return to_samples(samples.astype(np.float64).clip(-limit, limit) * (magnitudes.max() / limit))
