from __future__ import annotations

import numpy as np
import pytest

from shotproof.core.errors import InputError
from shotproof.masks.cutter import cutters
from shotproof.media.box import Box
from tests.drawn_layers import Mask, Pixels, disc

SIDE = 192


def red_disc_on_green_noise(mask: Mask, seed: int = 0) -> Pixels:
    """A red disc, not all of one red, on green noise."""
    rng = np.random.default_rng(seed)
    red = np.array((200, 40, 40)) + rng.integers(-25, 26, (*mask.shape, 3))
    green = np.array((50, 120, 40)) + rng.integers(-50, 51, (*mask.shape, 3))
    return np.where(mask[..., None], red, green).clip(0, 255).astype(np.uint8)


def overlap(mask: Mask, other: Mask) -> float:
    """Intersection over union."""
    return float((mask & other).sum() / (mask | other).sum())


def box_of(mask: Mask) -> Box:
    """The box around a mask."""
    y, x = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    height, width = mask.shape
    return Box(x[0] / width, y[0] / height, (x[-1] + 1) / width, (y[-1] + 1) / height)


@pytest.mark.parametrize("across", [0.35, 0.5])
@pytest.mark.parametrize("has_box", [True, False])
def test_a_disc_is_cut_out(has_box: bool, across: float) -> None:
    true = disc(SIDE, 256, 0.3, across=across)
    pixels = red_disc_on_green_noise(true)
    cutter = cutters.make("grabcut")
    mask = cutter.cut(pixels, box_of(true) if has_box else None)
    assert (mask.shape, mask.dtype) == (true.shape, np.bool_)
    assert overlap(mask, true) > (0.9 if has_box else 0.8)
    np.testing.assert_array_equal(cutter.cut(pixels, box_of(true) if has_box else None), mask)


def test_nothing_outside_of_the_box_is_foreground() -> None:
    true = disc(SIDE, SIDE, 0.15, across=0.3) | disc(SIDE, SIDE, 0.15, across=0.7)
    box = box_of(disc(SIDE, SIDE, 0.15, across=0.3))
    mask = cutters.make("grabcut").cut(red_disc_on_green_noise(true), box)
    _, _, right, _ = box.in_pixels(SIDE, SIDE)
    assert not mask[:, right:].any()
    assert overlap(mask, disc(SIDE, SIDE, 0.15, across=0.3)) > 0.9


@pytest.mark.parametrize("box", [Box(0, 0, 1, 1), Box(0.5, 0.5, 0.5, 0.5), Box(0, 0, 0.001, 1), None])
def test_any_box_gives_a_mask(box: Box | None) -> None:
    pixels = red_disc_on_green_noise(disc(48, 64))
    assert cutters.make("grabcut(iterations=1)").cut(pixels, box).shape == (48, 64)
    assert cutters.make("grabcut(iterations=1)").cut(np.zeros((48, 64, 3), np.uint8), box).shape == (48, 64)


def test_iterations_are_in_range() -> None:
    with pytest.raises(InputError, match="iterations: expected a whole number from 1 to 20, found 0"):
        cutters.make("grabcut(iterations=0)")
