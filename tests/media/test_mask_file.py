from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shotproof.core.errors import UnreadableItem
from shotproof.media.mask_file import fits, read_fitting_mask, read_mask, scaled_mask
from tests.drawn_layers import Mask, disc

MASK = disc(24, 32)


def palette(*colors: tuple[int, int, int]) -> Image.Image:
    """The mask as indices 0 and 1 of a palette."""
    image = Image.fromarray(MASK.astype(np.uint8), "P")
    image.putpalette([value for color in colors for value in color])
    return image


def transparent(mode: str, alpha: np.ndarray) -> Image.Image:
    """An image of one color with the mask in its alpha."""
    image = Image.new(mode.removesuffix("A"), (32, 24), 255 if mode == "LA" else (200, 10, 10))
    image.putalpha(Image.fromarray(alpha))
    return image


def gray(foreground: int, background: int = 0, dtype: type = np.uint8) -> Image.Image:
    return Image.fromarray(np.where(MASK, foreground, background).astype(dtype))


KINDS: dict[str, Callable[[], Image.Image]] = {
    "one bit": lambda: Image.fromarray(MASK),
    "white on black": lambda: gray(255),
    "light on dark": lambda: gray(200, 90),
    "0 and 1": lambda: gray(1),
    "label 7": lambda: gray(7),
    "labels": lambda: Image.fromarray((MASK * np.arange(1, 33)).astype(np.uint8)),
    "16 bits": lambda: gray(65535, dtype=np.uint16),
    "labels of 16 bits": lambda: gray(300, dtype=np.uint16),
    "color": lambda: Image.fromarray(np.where(MASK[..., None], (255, 255, 255), (0, 0, 0)).astype(np.uint8)),
    "dark colors": lambda: Image.fromarray(np.where(MASK[..., None], (128, 0, 0), (0, 0, 0)).astype(np.uint8)),
    "alpha": lambda: transparent("RGBA", (MASK * 255).astype(np.uint8)),
    "alpha of grays": lambda: transparent("LA", (MASK * 255).astype(np.uint8)),
    "opaque alpha": lambda: Image.merge("LA", [gray(255), Image.new("L", (32, 24), 255)]),
    "nearly opaque alpha": lambda: Image.merge(
        "LA", [gray(255), Image.fromarray(np.where(MASK, 250, 255).astype("u1"))]
    ),
    "palette of colors": lambda: palette((0, 0, 0), (128, 0, 0)),
    "palette with a light background": lambda: palette((250, 240, 230), (0, 0, 128)),
    "palette of grays": lambda: palette((0, 0, 0), (255, 255, 255)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_mask_is_read(tmp_path: Path, kind: str) -> None:
    KINDS[kind]().save(tmp_path / "mask.png")
    mask = read_mask(tmp_path / "mask.png")
    assert mask.dtype == np.bool_
    np.testing.assert_array_equal(mask, MASK)


def test_white_may_be_the_first_color_of_a_palette_of_grays(tmp_path: Path) -> None:
    """As programs that shrink files write it."""
    palette((255, 255, 255), (0, 0, 0)).save(tmp_path / "mask.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.png"), ~MASK)


@pytest.mark.parametrize("value", [0, 1, 255])
def test_a_mask_of_one_value_is_empty_or_full(tmp_path: Path, value: int) -> None:
    Image.new("L", (32, 24), value).save(tmp_path / "mask.png")
    assert read_mask(tmp_path / "mask.png").mean() == (value > 0)


def test_a_turned_mask_is_read_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    gray(255).transpose(Image.Transpose.ROTATE_90).save(tmp_path / "mask.png", exif=exif)
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.png"), MASK)


def test_what_is_no_mask_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(UnreadableItem, match=r"^mask .*a\.png cannot be read"):
        read_mask(tmp_path / "a.png")
    with pytest.raises(UnreadableItem, match=r"^mask .*b\.png does not exist"):
        read_mask(tmp_path / "b.png")
    Image.fromarray(MASK.astype(np.float32)).save(tmp_path / "c.tif")
    with pytest.raises(UnreadableItem, match=r"c\.tif cannot be read: floating-point"):
        read_mask(tmp_path / "c.tif")


@pytest.mark.parametrize(
    ("size", "is_fitting"),
    [((64, 48), True), ((32, 24), True), ((200, 150), True), ((33, 24), True), ((48, 64), False), ((48, 48), False)],
)
def test_a_mask_may_have_another_size_but_no_other_shape(
    tmp_path: Path, size: tuple[int, int], is_fitting: bool
) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "image.png")
    Image.new("L", size, 255).save(tmp_path / "mask.png")
    assert fits(size, (64, 48)) is is_fitting
    if is_fitting:
        assert read_fitting_mask(tmp_path / "mask.png", tmp_path / "image.png").all()
        return
    with pytest.raises(UnreadableItem, match=r"mask\.png has \d+ x \d+ pixels, .* shape of .*image\.png \(64 x 48\)"):
        read_fitting_mask(tmp_path / "mask.png", tmp_path / "image.png")


def test_scaling_keeps_the_shape_of_the_foreground() -> None:
    scaled: Mask = scaled_mask(disc(96, 128), 32, 24)
    assert scaled.shape == MASK.shape
    assert (scaled & MASK).sum() / (scaled | MASK).sum() > 0.85
    assert scaled_mask(MASK, 32, 24) is MASK
