"""Decoding of image files: broken, rotated, palettized, or decompression bombs."""

from __future__ import annotations

import contextlib
import struct
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps

from shotproof.core.errors import UnreadableItem
from shotproof.core.storage.files import LARGEST_ITEM, check_regular, source_of
from shotproof.media.unwritten import ItemFile, UnwrittenItem

MAX_PIXELS = 100_000_000
IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff", "ppm")
# Only these formats are decoded, whatever the file's name: Pillow's others may start programs (EPS) or crash.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")

# Least side of a JPEG that is decoded at reduced size: twice the usual input of a network.
LEAST_SIDE = 448
# Size at which JPEGs are decoded, for the fingerprints of results.
REDUCED = f"jpeg>={LEAST_SIDE},2x"

_TURNED = (5, 6, 7, 8)  # orientations (EXIF) that exchange width and height

# Images decoded within `decoded_once`, by path and requested least side, 0 for all pixels.
_decoded: ContextVar[dict[tuple[Path, int], Image.Image] | None] = ContextVar("decoded", default=None)

# Exceptions that Pillow's decoders raise on broken files, documented or not.
_DECODER_ERRORS = (
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


class UnwrittenImage(UnwrittenItem):
    """An image that no file holds: it is made when it is read."""

    @abstractmethod
    def image(self, side: int | None = None) -> Image.Image:
        """Return the image, as RGB and upright; `side` is that of `open_image`."""


def open_image(path: ItemFile, *, side: int | None = None) -> Image.Image:
    """Decode an image as RGB, upright.

    Args:
        path: the file, or an image that is made when it is read
        side: the longer side, in pixels, to which the caller scales it down; None if it needs every pixel. A large
            JPEG is then decoded at a half, a quarter or an eighth of its size, so that either side keeps at least
            LEAST_SIDE pixels and twice `side`. Any other image is decoded in full, to the same bytes as without it.

    Raises:
        UnreadableItem: the file is missing, broken or has more than MAX_PIXELS.
    """
    if not isinstance(path, Path):
        if not isinstance(path, UnwrittenImage):
            raise UnreadableItem(f"expected an image, found a {type(path).__name__}")
        return path.image(side)
    least = 0 if side is None else max(LEAST_SIDE, 2 * side)
    key, decoded = (path, least), _decoded.get()
    if decoded is not None and key in decoded:
        return decoded[key].copy()
    with opened_image(path) as image:
        if least:
            image.draft(None, (least, least))  # None: the mode of the file
        rgb = _to_rgb(ImageOps.exif_transpose(image))
    if decoded is not None:
        decoded[key] = rgb
    return rgb


@contextlib.contextmanager
def decoded_once() -> Iterator[None]:
    """Decode each image only once within this context, for code that reads a file for several purposes."""
    token = _decoded.set({})
    try:
        yield
    finally:
        _decoded.reset(token)


def image_size(path: ItemFile) -> tuple[int, int]:
    """Return the width and height of the upright image from the file's header, without decoding pixels.

    Raises:
        UnreadableItem: the file is missing, broken or has more than MAX_PIXELS.
    """
    if isinstance(path, UnwrittenImage):
        return path.image().size
    assert isinstance(path, Path)  # sounds have no size
    with opened_image(path) as image:
        width, height = image.size
        return (height, width) if _is_turned(image) else (width, height)


@contextlib.contextmanager
def opened_image(path: Path, kind: str = "image") -> Iterator[Image.Image]:
    """Open an image file, whose pixels are not decoded yet. Errors in the block become UnreadableItem.

    Args:
        path: the file
        kind: what messages call it
    """
    try:
        check_regular(path, LARGEST_ITEM)
        # Pillow's own warning of large images is replaced by a limit that is checked before pixels are decoded.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(source_of(path), formats=FORMATS) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise UnreadableItem(f"{kind} {path} has {width} x {height} pixels, more than {MAX_PIXELS:,}")
                yield image
    except FileNotFoundError as error:
        raise UnreadableItem(f"{kind} {path} does not exist") from error
    except _DECODER_ERRORS as error:
        raise UnreadableItem(f"{kind} {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def is_readable(path: Path) -> bool:
    """Return whether an image can be decoded."""
    try:
        open_image(path)
    except UnreadableItem:
        return False
    return True


def _is_turned(image: Image.Image) -> bool:
    """Return whether the header asks to turn the image by 90 degrees."""
    if image.format == "TIFF":  # Pillow has exchanged them
        return False
    if image.format == "PNG" and "exif" not in image.info:  # Pillow would decode the pixels to look behind them
        return False
    return image.getexif().get(ExifTags.Base.Orientation) in _TURNED


def _to_rgb(image: Image.Image) -> Image.Image:
    """Convert to eight bits per channel; Pillow alone would clip 16-bit grays at 255, which leaves a white image."""
    if image.mode == "F":
        raise ValueError("floating-point pixels have no fixed range")
    if image.mode.startswith("I"):
        image = Image.fromarray((np.clip(np.asarray(image), 0, 65535) // 257).astype(np.uint8))
    return image.convert("RGB")
