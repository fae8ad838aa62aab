"""Light and color of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shotproof.changes.change import ImageChange, Pixels
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.noise import IMAGENET_C
from shotproof.changes.pixels import Floats, to_pixels, to_unit
from shotproof.core.options import option

_BRIGHTNESS = (0.1, 0.2, 0.3, 0.4, 0.5)  # added to the value (largest channel)
_CONTRAST = (0.4, 0.3, 0.2, 0.1, 0.05)  # share of the contrast that is left
_FOG = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))  # thickness, and how fast finer detail fades
_GRAY = (0.2, 0.4, 0.6, 0.8, 1.0)  # share of the color that is lost
_HUE = (18, 36, 54, 72, 90)  # degrees
_WARMTH = (0.1, 0.2, 0.3, 0.4, 0.5)  # red gains, and blue loses, this share
_LUMA = np.array([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Light(ImageChange):
    """Brighter, darker, with less contrast or in fog; all but darker as in ImageNet-C."""

    about = "brighter, darker, low contrast or fog, as in ImageNet-C"
    paper = IMAGENET_C

    style: Literal["brighter", "darker", "contrast", "fog"] = option("brighter", "what becomes of the light")

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Change the light."""
        level, values = self.severity - 1, to_unit(pixels)
        if self.style == "contrast":
            mean = values.mean(axis=(0, 1), keepdims=True)
            return to_pixels((values - mean) * _CONTRAST[level] + mean)
        if self.style == "fog":
            thickness, decay = _FOG[level]
            fog = _cloud(pixels.shape[0], pixels.shape[1], decay, draws)[..., None]
            highest = values.max()
            return to_pixels((values + thickness * fog) * highest / (highest + thickness))
        amount = _BRIGHTNESS[level] if self.style == "brighter" else -_BRIGHTNESS[level]
        red, green, blue = np.moveaxis(values, 2, 0)
        value = np.maximum(np.maximum(red, green), blue)[..., None]
        # Hue and saturation stay: all channels are scaled alike; black has neither and becomes gray.
        scaled = values / np.where(value > 0, value, 1) * (value + amount).clip(0, 1)
        return to_pixels(np.where(value > 0, scaled, max(amount, 0.0)))


@dataclass(frozen=True)
class Color(ImageChange):
    """Less color, other hues, or light of another color; the lightness stays about the same."""

    about = "less color, other hues or another white balance"

    style: Literal["gray", "hue", "white-balance"] = option("gray", "what becomes of the colors")

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Change the colors."""
        level, values = self.severity - 1, to_unit(pixels)
        luma = values @ _LUMA
        if self.style == "gray":
            return to_pixels(values + _GRAY[level] * (luma[..., None] - values))
        if self.style == "hue":
            return to_pixels(values @ _hue_rotation(np.radians(_HUE[level])).T)
        warmth = _WARMTH[level] * (1 if float(draws.uniform(1)[0]) < 0.5 else -1)
        return to_pixels(values * np.array([1 + warmth, 1.0, 1 - warmth]))


def _hue_rotation(angle: float) -> Floats:
    """Build the rotation of colors about the axis of grays, which keeps their luma [3, 3]."""
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.595716, -0.274453, -0.321263], [0.211456, -0.522591, 0.311135]])
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    rotation: Floats = np.linalg.inv(to_yiq) @ turn @ to_yiq
    return rotation


def _cloud(height: int, width: int, decay: float, draws: ItemDraws) -> Floats:
    """Draw a cloud from 0 to 1, [height, width]: noise on ever finer grids, each weaker by a factor."""
    from scipy.ndimage import zoom

    side, cells, weight = max(height, width), 2, 1.0
    cloud = np.zeros((side, side))
    while cells < 2 * side:
        grid = draws.uniform(cells + 1, cells + 1) - 0.5
        cloud += weight * zoom(grid, side / (cells + 1), order=1, mode="nearest", grid_mode=True)[:side, :side]
        cells, weight = 2 * cells, weight / decay
    cloud = (cloud - cloud.min()) / max(float(np.ptp(cloud)), 1e-12)
    shown: Floats = cloud[:height, :width]
    return shown
