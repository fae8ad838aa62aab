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
from shotproof.media.images import FORMATS, IMAGE_EXTENSIONS, decoded_once, image_size, open_image

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
    Image.new("1", (10_000, 10_000)).save(tmp_path / "most.png")
    assert image_size(tmp_path / "most.png") == (10_000, 10_000)
    Image.new("1", (10_001, 10_000)).save(tmp_path / "more.png")
    with pytest.raises(UnreadableItem, match="10001 x 10000 pixels, more than 100,000,000"):
        image_size(tmp_path / "more.png")


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


def scene(width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture with shapes of all sizes, and the noise of a camera."""
    rng = np.random.default_rng(seed)
    pixels = np.zeros((height, width, 3))
    for cells in (2, 9, 40):
        coarse = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        pixels += np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)) / 3
    return Image.fromarray(np.clip(pixels + rng.normal(0, 7, pixels.shape), 0, 255).astype(np.uint8))


@pytest.mark.parametrize(
    ("size", "side", "expected"),
    [
        ((895, 1200), 224, (895, 1200)),  # half of it would be smaller than twice the side
        ((896, 1201), 224, (448, 601)),
        ((1792, 1792), 224, (448, 448)),
        ((1792, 1792), 8, (448, 448)),  # the same for whoever needs less
        ((1792, 1792), 225, (896, 896)),
        ((1792, 1792), 897, (1792, 1792)),
        ((1792, 1792), None, (1792, 1792)),
    ],
)
def test_a_large_jpeg_is_decoded_with_at_least_twice_the_side(
    tmp_path: Path, size: tuple[int, int], side: int | None, expected: tuple[int, int]
) -> None:
    Image.new("RGB", size).save(tmp_path / "image.jpg")
    assert open_image(tmp_path / "image.jpg", side=side).size == expected


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_a_reduced_jpeg_looks_like_the_whole_one(tmp_path: Path, options: dict[str, object]) -> None:
    scene(2000, 1500).save(tmp_path / "image.jpg", quality=90, **options)
    whole, reduced = (open_image(tmp_path / "image.jpg", side=side) for side in (None, 224))
    assert reduced.size == (1000, 750)
    far = np.subtract(*(np.asarray(image.resize((224, 224)), float) for image in (whole, reduced)))
    assert np.abs(far).mean() < 0.5  # of 255


def test_a_reduced_jpeg_is_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    scene(2000, 1500).save(tmp_path / "turned.jpg", exif=exif)
    scene(2000, 1500).save(tmp_path / "image.jpg")
    turned, plain = (open_image(tmp_path / name, side=224) for name in ("turned.jpg", "image.jpg"))
    np.testing.assert_array_equal(np.asarray(turned), np.rot90(np.asarray(plain), k=-1))


@pytest.mark.parametrize("extension", ["png", "webp", "bmp", "gif", "tif"])
def test_other_formats_are_never_reduced(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"image.{extension}"
    scene(1000, 1000).save(path)
    assert open_image(path, side=32).tobytes() == open_image(path).tobytes()


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_a_reduced_jpeg_of_another_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    scene(1000, 1000).convert(mode).save(tmp_path / "image.jpg")
    reduced = open_image(tmp_path / "image.jpg", side=224)
    assert (reduced.mode, reduced.size) == ("RGB", (500, 500))


def test_a_cut_jpeg_is_refused_alike_if_it_is_reduced(tmp_path: Path) -> None:
    whole = encoded(scene(1000, 1000), "JPEG")
    (tmp_path / "image.jpg").write_bytes(whole[: len(whole) // 2])
    told = []
    for side in (None, 224):
        with pytest.raises(UnreadableItem) as caught:
            open_image(tmp_path / "image.jpg", side=side)
        told.append(str(caught.value).split("(")[0])  # without the count of bytes
    assert told[0] == told[1]
    assert "image file is truncated" in told[0]


@pytest.mark.parametrize("extension", ["jpg", "png", "webp", "tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_size_is_that_of_the_upright_image(tmp_path: Path, extension: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"image.{extension}"
    Image.new("RGB", (64, 48)).save(path, exif=exif)
    assert image_size(path) == open_image(path).size == ((64, 48) if orientation < 5 else (48, 64))


def test_the_first_picture_of_several_in_a_jpeg_is_reduced(tmp_path: Path) -> None:
    first, second = scene(1000, 1000), scene(1000, 1000, seed=1)
    first.save(tmp_path / "several.jpg", "MPO", save_all=True, append_images=[second])  # as phones keep a depth map
    first.save(tmp_path / "one.jpg", "JPEG")
    several, one = (open_image(tmp_path / name, side=224) for name in ("several.jpg", "one.jpg"))
    assert several.tobytes() == one.tobytes()


def test_an_image_is_decoded_once_for_several_purposes_and_anew_after_that(tmp_path: Path) -> None:
    path = tmp_path / "image.jpg"
    Image.new("RGB", (1800, 1800), "red").save(path)
    with decoded_once():
        first = open_image(path, side=64)
        Image.new("RGB", (1800, 1800), "blue").save(path)
        again = open_image(path, side=224)  # whose least side is the same
        whole = open_image(path)  # decoded in another way
    assert again.tobytes() == first.tobytes()
    assert again is not first
    assert (first.size, whole.size) == ((450, 450), (1800, 1800))
    assert whole.getpixel((0, 0)) == open_image(path, side=64).getpixel((0, 0)) != first.getpixel((0, 0))
