"""Opening image files that may be anything: broken, rotated, palettized, or a bomb."""

from __future__ import annotations

import contextlib
import struct
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from shotproof.core.errors import UnreadableItem
from shotproof.core.storage.files import LARGEST_ITEM, check_regular, source_of

MAX_PIXELS = 100_000_000
IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff", "ppm")
# Whatever a file's name says, only these are decoded: Pillow knows others that start programs (EPS) or crash.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")

# What either side of a JPEG keeps at least, if it is decoded at a part of its size: twice the usual input of a network.
LEAST_SIDE = 448
# How large JPEGs are decoded, for the fingerprints of what is made of images.
REDUCED = f"jpeg>={LEAST_SIDE},2x"

# What was decoded within `decoded_once`, by the path and the least side that was asked for, 0 for all pixels.
_decoded: ContextVar[dict[tuple[Path, int], Image.Image] | None] = ContextVar("decoded", default=None)

# What Pillow's decoders raise on broken files; the documented ones and those that slip through.
_BROKEN = (
    OSError,
    ValueError,
    SyntaxError,
    Image.DecompressionBombError,
    EOFError,
    LookupError,
    NotImplementedError,
    TypeError,
    struct.error,
)


def open_image(path: Path, *, side: int | None = None) -> Image.Image:
    """Decode an image as RGB, upright.

    Args:
        path: the file
        side: the longer side, in pixels, to which the caller scales it down; None if it needs every pixel. A large
            JPEG is then decoded at a half, a quarter or an eighth of its size, so that either side keeps at least
            LEAST_SIDE pixels and twice `side`. Any other image is decoded in full, to the same bytes as without it.

    Raises:
        UnreadableItem: the file is missing, broken or has more than MAX_PIXELS.
    """
    least = 0 if side is None else max(LEAST_SIDE, 2 * side)
    key, kept = (path, least), _decoded.get()
    if kept is not None and key in kept:
        return kept[key].copy()
    with _opened(path) as image:
        if least:
            image.draft(None, (least, least))  # None: the mode of the file
        rgb = _to_rgb(ImageOps.exif_transpose(image))
    if kept is not None:
        kept[key] = rgb
    return rgb


@contextlib.contextmanager
def decoded_once() -> Iterator[None]:
    """Decode an image once, if it is opened several times within: for whoever reads one file for several purposes."""
    before = _decoded.set({})
    try:
        yield
    finally:
        _decoded.reset(before)


def image_size(path: Path) -> tuple[int, int]:
    """Width and height as the file's header has them; no pixel is decoded. UnreadableItem as of `open_image`."""
    with _opened(path) as image:
        return image.size


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        check_regular(path, LARGEST_ITEM)
        # Pillow warns of large images by itself; our own limit, checked before any pixel is decoded, decides.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(source_of(path), formats=FORMATS) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise UnreadableItem(f"image {path} has {width} x {height} pixels, more than {MAX_PIXELS:,}")
                yield image
    except FileNotFoundError as error:
        raise UnreadableItem(f"image {path} does not exist") from error
    except _BROKEN as error:
        raise UnreadableItem(f"image {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def is_readable(path: Path) -> bool:
    """Return whether an image can be decoded."""
    try:
        open_image(path)
    except UnreadableItem:
        return False
    return True


def _to_rgb(image: Image.Image) -> Image.Image:
    """Eight bits per channel; Pillow alone would cut 16-bit grays off at 255, which leaves a white image."""
    if image.mode == "F":
        raise ValueError("floating-point pixels have no fixed range")
    if image.mode.startswith("I"):
        image = Image.fromarray((np.clip(np.asarray(image), 0, 65535) // 257).astype(np.uint8))
    return image.convert("RGB")
