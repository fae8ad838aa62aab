from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from shotproof.attributes.detector import detect
from shotproof.attributes.detectors.colors import TERMS
from shotproof.attributes.detectors.photometric import SIDE, photometric_words
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError
from shotproof.core.runtime.runtime import Runtime

SOLID = {
    "black": (5, 5, 5),
    "white": (250, 250, 250),
    "grey": (128, 128, 128),
    "red": (220, 20, 20),
    "orange": (255, 140, 0),
    "yellow": (250, 230, 20),
    "green": (30, 140, 40),
    "blue": (30, 60, 200),
    "purple": (120, 20, 140),
    "pink": (255, 192, 203),
    "brown": (120, 70, 30),
}


def image_of(pixels: np.ndarray) -> Image.Image:
    """RGB from [h, w] lightness or [h, w, 3]."""
    pixels = np.clip(pixels, 0, 255).astype(np.uint8)
    return Image.fromarray(np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels)


def words(pixels: np.ndarray) -> set[str]:
    return set(photometric_words(image_of(pixels)))


def noise(seed: int = 0, side: int = 256, spread: float = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(128, spread, (side, side))


def catalog_of(folder: Path, files: list[str]) -> Catalog:
    same = ["x"] * len(files)
    return Catalog(pa.table({"item": files, "path": files, "label": same, "split": same}), folder)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("size", [(64, 64), (7, 5), (300, 200)])
def test_solid_images_are_of_their_color_plain_and_without_contrast(term: str, size: tuple[int, int]) -> None:
    found = set(photometric_words(Image.new("RGB", size, SOLID[term])))
    assert {word for word in found if word.startswith("mostly")} == {f"mostly {term}"}
    assert {word for word in found if word.endswith("border")} == {f"{term} border"}
    assert {"plain", "low contrast"} <= found
    assert not {"blurry", "cluttered"} & found
    assert ("grey" in found) == (term in ("black", "white", "grey"))
    assert ("vivid" in found) == (term in ("red", "orange", "yellow", "green", "blue", "purple", "brown"))
    assert ("dark" in found) == (term in ("black", "blue", "purple", "brown"))
    assert ("bright" in found) == (term in ("white", "orange", "yellow", "pink"))


def test_the_border_and_the_whole_are_told_apart() -> None:
    pixels = np.zeros((128, 128, 3))
    pixels[:] = SOLID["green"]
    pixels[16:-16, 16:-16] = SOLID["red"]  # 9 / 16 of the image
    found = words(pixels)
    assert {"mostly red", "green border"} <= found
    assert not {"mostly green", "red border"} & found


def test_half_is_not_most() -> None:
    pixels = np.zeros((64, 64, 3))
    pixels[:, :32], pixels[:, 32:] = SOLID["green"], SOLID["red"]
    assert not {word for word in words(pixels) if "mostly" in word or "border" in word}
    pixels[0, 32] = SOLID["green"]
    assert {"mostly green", "green border"} <= words(pixels)


def test_blur_takes_the_clutter_away() -> None:
    sharp = image_of(noise(side=128, spread=60))
    blurred = sharp.filter(ImageFilter.GaussianBlur(6))
    assert "cluttered" in photometric_words(sharp)
    assert "blurry" not in photometric_words(sharp)
    assert "blurry" in photometric_words(blurred)
    assert "cluttered" not in photometric_words(blurred)


def test_a_smooth_slope_is_blurry_and_a_checkerboard_is_not() -> None:
    slope = np.tile(np.linspace(0, 255, 128), (128, 1))
    board = 255.0 * (np.indices((128, 128)) // 8).sum(axis=0) % 510
    assert "blurry" in words(slope)
    assert not {"low contrast", "cluttered"} & words(slope)
    assert "blurry" not in words(board)


def test_an_image_that_had_to_be_enlarged_is_not_called_blurry() -> None:
    slope = np.tile(np.linspace(0, 255, 128), (128, 1))
    assert "blurry" not in photometric_words(image_of(slope).resize((SIDE - 1, 128)))


@pytest.mark.parametrize(
    ("size", "expected"),
    [((100, 121), {"portrait"}), ((100, 120), set()), ((120, 100), set()), ((121, 100), {"landscape"})],
)
def test_the_shape_is_judged_upright(tmp_path: Path, size: tuple[int, int], expected: set[str]) -> None:
    shapes = {"portrait", "landscape"}
    assert shapes & set(photometric_words(Image.new("RGB", size))) == expected
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter when shown
    Image.new("RGB", size).transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.jpg", exif=exif)
    found = detect(catalog_of(tmp_path, ["turned.jpg"]), "photometric").to_words()["turned.jpg"]
    assert shapes & set(found or []) == expected


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([1, 4, 16]), st.integers(2, 4))
def test_mirrored_turned_and_enlarged_images_have_the_same_words(seed: int, cell: int, factor: int) -> None:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (SIDE // cell, SIDE // cell, 3)) * rng.uniform(0.2, 1, 3)
    pixels = np.kron(coarse, np.ones((cell, cell, 1)))
    expected = words(pixels)
    assert words(pixels[::-1]) == expected
    assert words(pixels[:, ::-1]) == expected
    assert words(np.rot90(pixels)) == expected
    assert words(np.kron(pixels, np.ones((factor, factor, 1)))) == expected


@given(st.integers(0, 255), st.integers(1, 40))
def test_more_light_never_makes_an_image_darker(level: int, more: int) -> None:
    scale = ["dark", None, "bright"]

    def place(value: int) -> int:
        found = words(np.full((64, 64), value))
        return scale.index(next((word for word in ("dark", "bright") if word in found), None))

    assert place(level) <= place(min(level + more, 255))


def test_words_depend_neither_on_the_other_images_nor_on_the_workers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = [f"{number}.png" for number in range(130)]  # three chunks
    for file in files:
        shape = rng.integers(20, 90, 2)
        Image.fromarray(rng.integers(0, rng.integers(2, 256), (*shape, 3), dtype=np.uint8)).save(tmp_path / file)
    catalog = catalog_of(tmp_path, files)
    one = detect(catalog, "photometric", runtime=Runtime(workers=1))
    assert detect(catalog, "photometric", runtime=Runtime(workers=2)).table == one.table
    for file in files[::40]:
        assert detect(catalog_of(tmp_path, [file]), "photometric").to_words()[file] == one.to_words()[file]


def test_broken_images_are_named_and_unknown_and_not_fatal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Image.new("RGB", (80, 80)).save(tmp_path / "good.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "good.png").read_bytes()[:60])
    (tmp_path / "text.jpg").write_text("no image")
    catalog = catalog_of(tmp_path, ["cut.png", "good.png", "missing.png", "text.jpg"])
    with caplog.at_level(logging.WARNING, logger="shotproof"):
        found = detect(catalog, "photometric").to_words()
    assert [item for item, held in found.items() if held is None] == ["cut.png", "missing.png", "text.jpg"]
    (warning,) = caplog.messages
    assert "3 of 4 images" in warning
    assert "cut.png, missing.png, text.jpg" in warning


def test_a_catalog_without_a_readable_image_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none of the 2 images can be read, e\.g\. item 'a'.*does not exist"):
        detect(catalog_of(tmp_path, ["a", "b"]), "photometric")
    with pytest.raises(InputError, match="the catalog has no items"):
        detect(catalog_of(tmp_path, []), "photometric")
