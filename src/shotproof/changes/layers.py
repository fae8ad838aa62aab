"""Foreground and background of an item: of an image by its mask, of a sound by the recordings it was mixed from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter, ImageOps

from shotproof.media.box import Box
from shotproof.media.clip import Samples
from shotproof.media.lufs import integrated_loudness
from shotproof.media.mixture import amplified, from_pcm, mix_clips

Floats = npt.NDArray[np.float64]
Content = npt.NDArray[Any]  # pixels [height, width, 3] or samples [n]

GRAY = 128  # behind a foreground that stands alone
EDGE = 1.0  # standard deviation, in pixels, by which the edge of a mask is softened
MARGIN = 0.06  # by which the hole around a foreground is widened, as a share of the shorter side


class Layers(ABC):
    """An item taken apart."""

    @abstractmethod
    def only_foreground(self) -> Content:
        """Return the item without its background."""

    @abstractmethod
    def only_background(self) -> Content:
        """Return the item without its foreground."""

    @abstractmethod
    def on_background_of(self, plate: Layers, margin_db: float | None = None) -> Content:
        """Return the foreground of this item on the background of another.

        Args:
            plate: the other item
            margin_db: of sounds, decibels by which the foreground is louder; None: as loud as its own background was
        """


@dataclass(frozen=True)
class ImageLayers(Layers):
    """Layers of an image.

    pixels: [height, width, 3]
    mask: whether a pixel shows the foreground, [height, width]
    box: around the foreground; None if it is unknown
    """

    pixels: npt.NDArray[np.uint8]
    mask: npt.NDArray[np.bool_]
    box: Box | None = None

    @property
    def nbytes(self) -> int:
        """Return the bytes in memory, with those of the filled background, which is kept once it is needed."""
        return int(2 * self.pixels.nbytes + self.mask.nbytes)

    def only_foreground(self) -> Content:
        """Return the foreground on gray."""
        return self._on(np.full_like(self.pixels, GRAY))

    def only_background(self) -> Content:
        """Return the image with its foreground filled in from around it."""
        return self._filled

    def on_background_of(self, plate: Layers, margin_db: float | None = None) -> Content:
        """Return the foreground on another image's background, which is scaled and cropped to this image's size."""
        assert isinstance(plate, ImageLayers)
        height, width = self.mask.shape
        background = Image.fromarray(plate._filled)
        return self._on(np.asarray(ImageOps.fit(background, (width, height), Image.Resampling.BICUBIC)))

    def _on(self, background: npt.NDArray[np.uint8]) -> Content:
        """Mix the foreground with another background of the same size, with soft edges."""
        soft = Image.fromarray(self.mask.astype(np.uint8) * 255).filter(ImageFilter.GaussianBlur(EDGE))
        weight = np.asarray(soft, dtype=np.uint32)[..., None]
        blended = (weight * self.pixels + (255 - weight) * background + 127) // 255
        return blended.astype(np.uint8)

    @cached_property
    def _filled(self) -> npt.NDArray[np.uint8]:
        """Return the image with its hole filled, which is the plate of many images."""
        return _fill(self.pixels, hole_around(self.mask, self.box))


@dataclass(frozen=True)
class SoundLayers(Layers):
    """Layers of a mixed sound.

    foreground, background: the recordings, [n]; the background as loud as it is in the mixture
    """

    foreground: Samples
    background: Samples

    def only_foreground(self) -> Content:
        """Return the foreground alone."""
        return _mixed(self.foreground, None)

    def only_background(self) -> Content:
        """Return the background alone."""
        return _mixed(self.background, None)

    def on_background_of(self, plate: Layers, margin_db: float | None = None) -> Content:
        """Return the foreground with another background, as loud as its own is, or below the foreground by a margin."""
        assert isinstance(plate, SoundLayers)
        wanted = integrated_loudness(self.background if margin_db is None else self.foreground) - (margin_db or 0.0)
        other = integrated_loudness(plate.background)
        gain_db = round(wanted - other, 4) if np.isfinite(wanted) and np.isfinite(other) else 0.0
        return _mixed(self.foreground, amplified(plate.background, gain_db))


def hole_around(mask: npt.NDArray[np.bool_], box: Box | None) -> npt.NDArray[np.bool_]:
    """Return the pixels of a plate to fill: all of the box, since what a mask misses would stay, and around the mask.

    Args:
        mask: whether a pixel shows the foreground, [height, width]
        box: around the foreground; None if it is unknown
    """
    from scipy.ndimage import maximum_filter

    height, width = mask.shape
    reach = 2 * round(MARGIN * min(height, width)) + 1
    hole: npt.NDArray[np.bool_] = maximum_filter(mask, max(3, reach), mode="nearest")
    y, x = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if len(y):
        hole[y[0] : y[-1] + 1, x[0] : x[-1] + 1] = True
    if box is not None:
        hole[box.touched_pixels(width, height)] = True
    return hole


def _mixed(foreground: Samples, background: Samples | None) -> Samples:
    """Mix as files are mixed, to 16 bits."""
    return from_pcm(mix_clips(foreground, background)[0])


def _fill(pixels: npt.NDArray[np.uint8], hole: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Fill a hole smoothly from the pixels around it: averages over ever larger blocks (push-pull interpolation)."""
    if hole.all():
        return np.full_like(pixels, GRAY)
    known = (~hole).astype(np.float64)
    height, width = hole.shape
    values = _upscaled(_pull(*_coarser(pixels.transpose(2, 0, 1) * known, known)))[:, :height, :width]
    filled = pixels.copy()
    filled[hole] = np.rint(values[:, hole]).clip(0, 255).T
    return filled


def _pull(weighted: Floats, weight: Floats) -> Floats:
    """Return values [3, h, w], known ones as they are and unknown ones from a coarser level.

    Args:
        weighted: values times their weights, [3, h, w]
        weight: from 0 (unknown) to 1 (known), [h, w]
    """
    height, width = weight.shape
    values = weighted / np.maximum(weight, 1e-12)
    if min(height, width) == 1 or (weight >= 1).all():
        if (weight > 0).all():
            return values
        mean = weighted.sum((1, 2), keepdims=True) / weight.sum()
        return np.broadcast_to(mean, values.shape)
    finer = _upscaled(_pull(*_coarser(weighted, weight)))[:, :height, :width]
    return weight * values + (1 - weight) * finer


def _coarser(weighted: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Average over blocks of two by two.

    Returns:
        weighted, weight: those of the blocks, [3, h / 2, w / 2] and [h / 2, w / 2], rounded up
    """
    weighted, weight = _block_sums(weighted), _block_sums(weight)
    # A block that is known in part is known: its weight is 1 at most, so that its values stay averages.
    scale = np.minimum(weight, 1.0) / np.maximum(weight, 1e-12)
    return weighted * scale, weight * scale


def _block_sums(values: Floats) -> Floats:
    """Add up blocks of two by two, [..., h, w] to [..., h / 2, w / 2], rounded up."""
    height, width = values.shape[-2:]
    even = np.pad(values, ((0, 0),) * (values.ndim - 2) + ((0, height % 2), (0, width % 2)))
    rows = even[..., 0::2, :] + even[..., 1::2, :]
    return rows[..., 0::2] + rows[..., 1::2]


def _upscaled(coarse: Floats) -> Floats:
    """Interpolate linearly between the centers of blocks of two by two, [3, h, w] to [3, 2 h, 2 w]."""
    for axis in (1, 2):
        near, far = 0.75 * coarse, 0.25 * np.moveaxis(coarse, axis, 0)
        finer = np.repeat(near, 2, axis)
        places = np.moveaxis(finer, axis, 0)
        places[0] += far[0]
        places[2::2] += far[:-1]
        places[1:-1:2] += far[1:]
        places[-1] += far[-1]
        coarse = finer
    return coarse
