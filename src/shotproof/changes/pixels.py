"""Arithmetic on pixels that several changes of images share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

from shotproof.changes.change import Pixels

Floats = npt.NDArray[np.float64]

NOMINAL_SIDE = 224  # pixels of the shorter side for which the lengths of changes are published


def scale_of(pixels: Pixels) -> float:
    """Return the pixels of this image per pixel of one whose shorter side has 224."""
    shorter: int = min(pixels.shape[:2])
    return shorter / NOMINAL_SIDE


def to_unit(pixels: Pixels) -> Floats:
    """Convert to numbers from 0 to 1."""
    return pixels / 255.0


def to_pixels(values: Floats) -> Pixels:
    """Convert numbers from 0 to 1 to eight bits; others are clipped."""
    rounded: Pixels = np.rint(values.clip(0, 1) * 255).astype(np.uint8)
    return rounded


def resized(pixels: Pixels, width: int, height: int, method: Image.Resampling) -> Pixels:
    """Resize an image."""
    return np.asarray(Image.fromarray(pixels).resize((max(1, width), max(1, height)), method))


def convolved(values: Floats, kernel: Floats) -> Floats:
    """Convolve each channel [height, width, 3] with a kernel of odd sides; borders are reflected."""
    from scipy.signal import fftconvolve

    rows, columns = (side // 2 for side in kernel.shape)
    padded = np.pad(values, ((rows, rows), (columns, columns), (0, 0)), mode="symmetric")
    blurred: Floats = fftconvolve(padded, kernel[..., None], mode="valid", axes=(0, 1))
    return blurred
