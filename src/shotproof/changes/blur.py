"""Blur."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from shotproof.changes.change import ImageChange, Pixels
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.noise import IMAGENET_C
from shotproof.changes.pixels import Floats, convolved, resized, scale_of, to_pixels, to_unit
from shotproof.core.options import option

_DISK = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))  # radius, and deviation that softens its edge
_STREAK = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))  # length, and deviation along it
_ZOOM = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))  # largest factor (excluded), and step
_STEEPEST = 45.0  # degrees


@dataclass(frozen=True)
class Blur(ImageChange):
    """Blur of a lens out of focus, of a moving or of a zooming camera, with ImageNet-C's parameters."""

    about = "defocus, motion or zoom blur, as in ImageNet-C"
    paper = IMAGENET_C

    style: Literal["defocus", "motion", "zoom"] = option("defocus", "cause of the blur")

    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Blur the image."""
        level, scale = self.severity - 1, scale_of(pixels)
        if self.style == "defocus":
            radius, softness = _DISK[level]
            return to_pixels(convolved(to_unit(pixels), _disk(radius * scale, softness * scale)))
        if self.style == "motion":
            length, deviation = _STREAK[level]
            angle = math.radians(_STEEPEST * (2 * float(draws.uniform(1)[0]) - 1))
            return to_pixels(_streak(to_unit(pixels), length * scale, deviation * scale, angle))
        largest, step = _ZOOM[level]
        zoomed = [_zoom(pixels, factor) for factor in np.arange(1, largest, step)]
        return to_pixels((to_unit(pixels) + np.sum(zoomed, axis=0)) / (1 + len(zoomed)))


def _disk(radius: float, softness: float) -> Floats:
    """Build the kernel of a lens: a disk with soft edges."""
    from scipy.ndimage import gaussian_filter

    reach = max(1, math.ceil(radius + 3 * softness))
    offsets = np.arange(-reach, reach + 1)
    # How much of a pixel at the edge lies within the disk, so that small radii differ too.
    distance = np.hypot(offsets[:, None], offsets)
    disk: Floats = gaussian_filter((radius + 0.5 - distance).clip(0, 1), softness)
    disk /= disk.sum()
    return disk


def _streak(values: Floats, length: float, deviation: float, angle: float) -> Floats:
    """Average along a line that begins at each pixel, with Gaussian weights."""
    steps = np.arange(max(2, round(2 * length) + 1))
    weights = np.exp(-(steps**2) / (2 * max(deviation, 0.5) ** 2))
    rows, columns = (np.rint(steps * part).astype(int) for part in (math.sin(angle), math.cos(angle)))
    reach = max(int(np.abs(rows).max()), int(np.abs(columns).max()))
    padded = np.pad(values, ((reach, reach), (reach, reach), (0, 0)), mode="symmetric")
    height, width = values.shape[:2]
    blurred = np.zeros_like(values)
    for weight, row, column in zip(weights / weights.sum(), reach + rows, reach + columns, strict=True):
        blurred += weight * padded[row : row + height, column : column + width]
    return blurred


def _zoom(pixels: Pixels, factor: float) -> Floats:
    """Enlarge the middle of an image to its full size."""
    height, width = pixels.shape[:2]
    rows, columns = (max(1, math.ceil(side / factor)) for side in (height, width))
    top, left = (height - rows) // 2, (width - columns) // 2
    middle = pixels[top : top + rows, left : left + columns]
    return to_unit(resized(np.ascontiguousarray(middle), width, height, Image.Resampling.BILINEAR))
