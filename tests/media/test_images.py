from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from shotproof.core.errors import UnreadableItem
from shotproof.media.images import FORMATS, IMAGE_EXTENSIONS, open_image

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def encoded(image: Image.Image, image_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("extension", IMAGE_EXTENSIONS)
def test_every_extension_is_read_as_rgb(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"image.{extension}"
    Image.fromarray(PIXELS).save(path)
    image = open_image(path)
    assert (image.mode, image.size) == ("RGB", (7, 5))
    if extension in ("png", "bmp", "tif", "tiff", "ppm"):
        np.testing.assert_array_equal(np.asarray(image), PIXELS)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGBA", "CMYK", "YCbCr", "LAB"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "image.tif"
    # Uncompressed ones of YCbCr were written by Pillow as it could not read them, before its version 13.
    Image.new(mode, (3, 2)).save(path, compression="tiff_lzw" if mode == "YCbCr" else None)
    assert open_image(path).mode == "RGB"


def test_transparent_palettes_warn_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    Image.fromarray(PIXELS).quantize(4).save(path, transparency=bytes([0, 128, 255, 255]))
    assert open_image(path).mode == "RGB"


def test_the_orientation_in_exif_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by a quarter, clockwise
    Image.fromarray(PIXELS).save(tmp_path / "image.png", exif=exif)
    np.testing.assert_array_equal(np.asarray(open_image(tmp_path / "image.png")), np.rot90(PIXELS, k=-1))


@pytest.mark.parametrize("extension", ["png", "tif"])
def test_sixteen_bits_are_scaled_not_cut(tmp_path: Path, extension: str) -> None:
    greys = np.arange(256, dtype=np.uint16).reshape(16, 16) * 257
    Image.fromarray(greys).save(tmp_path / f"image.{extension}")
    image = np.asarray(open_image(tmp_path / f"image.{extension}"))
    np.testing.assert_array_equal(image[..., 0], np.arange(256).reshape(16, 16))


def test_pixels_without_a_range_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "image.tif")
    with pytest.raises(UnreadableItem, match="floating-point"):
        open_image(tmp_path / "image.tif")


@pytest.mark.parametrize("side", [11_000, 200_000])
def test_a_bomb_is_refused_before_it_is_decoded(tmp_path: Path, side: int) -> None:
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT")
    with pytest.raises(UnreadableItem, match="pixels"):
        open_image(tmp_path / "bomb.png")


def test_the_limit_on_pixels_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    Image.new("1", (30, 20)).save(path)
    assert open_image(path, max_pixels=600).size == (30, 20)
    with pytest.raises(UnreadableItem, match="30 x 20 pixels, more than 599"):
        open_image(path, max_pixels=599)


def test_formats_that_start_programs_are_refused_whatever_the_name(tmp_path: Path) -> None:
    (tmp_path / "image.jpg").write_bytes(encoded(Image.fromarray(PIXELS), "EPS"))
    with pytest.raises(UnreadableItem, match="cannot identify"):
        open_image(tmp_path / "image.jpg")


def test_a_missing_file_a_folder_and_text_are_unreadable(tmp_path: Path) -> None:
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "text.jpg").write_text("not an image")
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(UnreadableItem, match=r"missing\.jpg does not exist"):
        open_image(tmp_path / "missing.jpg")
    for name in ("folder.jpg", "text.jpg", "empty.jpg"):
        with pytest.raises(UnreadableItem, match=f"{name} cannot be read"):
            open_image(tmp_path / name)


WHOLE = [encoded(Image.fromarray(PIXELS), image_format) for image_format in FORMATS]


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(WHOLE), st.lists(st.tuples(st.integers(0, 999), st.integers(0, 255)), max_size=4), st.data())
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, flips: list[tuple[int, int]], data: st.DataObject
) -> None:
    content = bytearray(whole)
    for position, value in flips:
        content[position % len(content)] = value
    path = tmp_path_factory.getbasetemp() / "damaged.img"
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    try:
        image = open_image(path)
    except UnreadableItem:
        return
    assert image.mode == "RGB"
