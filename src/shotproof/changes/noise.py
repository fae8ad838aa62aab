"""Noise in images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shotproof.changes.change import ImageChange, Pixels
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.pixels import to_pixels, to_unit
from shotproof.core.options import option

IMAGENET_C = "Hendrycks and Dietterich, Benchmarking Neural Network Robustness to Common Corruptions, 2019"

_DEVIATION = (0.08, 0.12, 0.18, 0.26, 0.38)
_PHOTONS = (60, 25, 12, 5, 3)  # that reach a white pixel, on average
_SHARE = (0.03, 0.06, 0.09, 0.17, 0.27)  # of values that become 0 or 255


@dataclass(frozen=True)
class Noise(ImageChange):
    """Gaussian, shot (photon) or impulse (salt and pepper) noise, with ImageNet-C's parameters."""

    about = "Gaussian, shot or impulse noise, as in ImageNet-C"
    paper = IMAGENET_C

    style: Literal["gaussian", "shot", "impulse"] = option("gaussian", "distribution of the noise")

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Add the noise to every value."""
        level = self.severity - 1
        if self.style == "gaussian":
            return to_pixels(to_unit(pixels) + _DEVIATION[level] * draws.normal(*pixels.shape))
        if self.style == "shot":
            return _count_photons(pixels, _PHOTONS[level], draws)
        is_hit = draws.uniform(*pixels.shape) < _SHARE[level]
        extreme = np.where(draws.uniform(*pixels.shape) < 0.5, np.uint8(0), np.uint8(255))
        return np.where(is_hit, extreme, pixels)


def _count_photons(pixels: Pixels, white: int, draws: ItemDraws) -> Pixels:
    """Draw each value from a Poisson distribution, by its quantiles."""
    from scipy.special import pdtr

    # The distribution functions of all 256 values, one after the other, so that one search finds every quantile.
    most = white + 10 * round(white**0.5) + 10
    steps = pdtr(np.arange(most), np.arange(256)[:, None] / 255 * white)
    values = np.arange(256)[:, None] + steps.clip(0, 1 - 2.0**-40)
    values[:, -1] = np.arange(256) + 1 - 2.0**-40
    place = np.searchsorted(values.ravel(), pixels + draws.uniform(*pixels.shape) * (1 - 2.0**-39))
    return to_pixels((place - pixels.astype(np.int64) * most) / white)
