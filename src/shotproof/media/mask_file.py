"""Decoding of mask files, however they tell the foreground: black and white, labels, a palette, transparency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from shotproof.core.errors import UnreadableItem
from shotproof.media.images import image_size, opened_image

Mask = npt.NDArray[np.bool_]

_OPAQUE = 128  # alpha from which a pixel is foreground
_HAVE_ALPHA = ("LA", "PA", "RGBA", "La", "RGBa")


def read_mask(path: Path) -> Mask:
    """Read a mask, upright.

    Transparency decides if some pixels are opaque and others are not. Otherwise, an image with a palette of colors has
    labels, of which 0 is the background. In any other image the foreground is what is lighter than middle gray, or
    lighter than black if nothing is lighter than middle gray, as with labels 0 and 1.

    Returns:
        Whether a pixel shows the foreground, [height, width].

    Raises:
        UnreadableItem: the file is missing or broken.
    """
    with opened_image(path, "mask") as file:
        return _foreground(ImageOps.exif_transpose(file))


def read_fitting_mask(path: Path, image: Path) -> Mask:
    """Read the mask of an image, which may have another size but not another shape.

    Raises:
        UnreadableItem: one of them cannot be read, or the mask has another shape.
    """
    mask, size = read_mask(path), image_size(image)
    height, width = mask.shape
    if not fits((width, height), size):
        raise UnreadableItem(
            f"mask {path} has {width} x {height} pixels, which is not the shape of {image} ({size[0]} x {size[1]})"
        )
    return mask


def read_usable_mask(path: Path, image: Path) -> Mask:
    """Read the mask of an image, which tells a foreground from a background.

    Raises:
        UnreadableItem: one of them cannot be read, or the mask has another shape, or is empty or full.
    """
    mask = read_fitting_mask(path, image)
    if not mask.any():
        raise UnreadableItem(f"mask {path} is empty")
    if mask.all():
        raise UnreadableItem(f"mask {path} is full: it shows no background")
    return mask


def scaled_mask(mask: Mask, width: int, height: int) -> Mask:
    """Scale a mask to the size of its image."""
    if mask.shape == (height, width):
        return mask
    scaled = Image.fromarray(mask).convert("L").resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(scaled) > 127


def fits(size: tuple[int, int], of_image: tuple[int, int]) -> bool:
    """Return whether a mask has the shape of its image, up to the rounding of its sides; sizes are width and height."""
    return abs(size[0] * of_image[1] - size[1] * of_image[0]) <= max(*size, *of_image)


def _foreground(image: Image.Image) -> Mask:
    """Return whether a pixel shows the foreground."""
    if image.mode in _HAVE_ALPHA or (image.mode in ("P", "L", "RGB") and "transparency" in image.info):
        alpha = np.asarray(image.convert("RGBA").getchannel("A"))
        if alpha.min() < _OPAQUE <= alpha.max():
            return alpha >= _OPAQUE
    if image.mode == "P":
        labels = np.asarray(image)
        colors = np.array(image.getpalette("RGB")).reshape(-1, 3)[np.unique(labels)]
        if (colors != colors[:, :1]).any():  # a palette of grays holds a gray image, whose white may be at any place
            return labels > 0
    if image.mode == "F":
        raise ValueError("floating-point pixels have no fixed range")
    has_16_bits = image.mode.startswith("I")
    values = np.asarray(image if has_16_bits else image.convert("L"))
    middle = 2**15 - 1 if has_16_bits else 127
    return np.asarray(values > (middle if values.max() > middle else 0))
