"""Position, size and visibility of what an image shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image

from shotproof.changes.change import ImageChange, Pixels
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.layers import GRAY
from shotproof.changes.pixels import resized

_DEGREES = (10, 20, 30, 45, 60)
_CROP = (0.9, 0.8, 0.7, 0.6, 0.5)  # share of each side that is left
_COVERED = (0.05, 0.1, 0.2, 0.3, 0.4)  # share of the area


@dataclass(frozen=True)
class Rotation(ImageChange):
    """Turned to the left or right by 10, 20, 30, 45 or 60 degrees; corners show the reflected image."""

    about = "turned by 10 to 60 degrees"

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Turn the image about its middle."""
        height, width = pixels.shape[:2]
        degrees = _DEGREES[self.severity - 1] * (1 if float(draws.uniform(1)[0]) < 0.5 else -1)
        border = math.ceil((math.hypot(height, width) - min(height, width)) / 2) + 1  # so that corners are covered
        padded = np.pad(pixels, ((border, border), (border, border), (0, 0)), mode="symmetric")
        cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        x, y = width / 2, height / 2  # the middle, which stays where it is
        origin = border + x - cosine * x + sine * y, border + y - sine * x - cosine * y
        # Where in the padded image each pixel is taken from. Unlike Image.rotate, this computes no pixel of the border.
        source = (cosine, -sine, origin[0], sine, cosine, origin[1])
        turn = Image.Transform.AFFINE
        return np.asarray(Image.fromarray(padded).transform((width, height), turn, source, Image.Resampling.BICUBIC))


@dataclass(frozen=True)
class Crop(ImageChange):
    """A part of the image, at a random place, enlarged to its full size."""

    about = "a part of the image, enlarged"

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Crop and enlarge."""
        height, width = pixels.shape[:2]
        rows, columns = (max(1, round(side * _CROP[self.severity - 1])) for side in (height, width))
        top = int(draws.below(height - rows + 1, 1)[0])
        left = int(draws.below(width - columns + 1, 1)[0])
        part = np.ascontiguousarray(pixels[top : top + rows, left : left + columns])
        return resized(part, width, height, Image.Resampling.BICUBIC)


@dataclass(frozen=True)
class Occlusion(ImageChange):
    """A gray square at a random place."""

    about = "a gray square that hides a part"

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Cover a part of the image."""
        height, width = pixels.shape[:2]
        side = min(round((_COVERED[self.severity - 1] * height * width) ** 0.5), height, width)
        top, left = (int(draws.below(length - side + 1, 1)[0]) for length in (height, width))
        covered = pixels.copy()
        covered[top : top + side, left : left + side] = GRAY
        return covered
