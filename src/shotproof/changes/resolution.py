"""Compression and coarse pixels."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from shotproof.changes.change import ImageChange, Pixels
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.noise import IMAGENET_C
from shotproof.changes.pixels import resized

_QUALITY = (25, 18, 15, 10, 7)
_SIZE = (0.6, 0.5, 0.4, 0.3, 0.25)  # of each side, before it is enlarged again


@dataclass(frozen=True)
class Compression(ImageChange):
    """JPEG of low quality, as in ImageNet-C."""

    about = "JPEG of low quality, as in ImageNet-C"
    paper = IMAGENET_C

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Compress the image and decode it again."""
        compressed = io.BytesIO()
        Image.fromarray(pixels).save(compressed, "JPEG", quality=_QUALITY[self.severity - 1])
        return np.asarray(Image.open(compressed).convert("RGB"))


@dataclass(frozen=True)
class Pixelation(ImageChange):
    """Coarse pixels, as in ImageNet-C."""

    about = "coarse pixels, as in ImageNet-C"
    paper = IMAGENET_C

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Average over blocks."""
        height, width = pixels.shape[:2]
        size = _SIZE[self.severity - 1]
        small = resized(pixels, int(width * size), int(height * size), Image.Resampling.BOX)
        return resized(small, width, height, Image.Resampling.BOX)
