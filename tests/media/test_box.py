from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.media.box import Box

shares = st.floats(0, 1)


@given(shares, shares, shares, shares, st.integers(1, 50), st.integers(1, 50))
def test_a_box_in_pixels_is_inside_the_image_and_not_empty(
    left: float, top: float, right: float, bottom: float, width: int, height: int
) -> None:
    box = Box(min(left, right), min(top, bottom), max(left, right), max(top, bottom))
    x0, y0, x1, y1 = box.in_pixels(width, height)
    assert 0 <= x0 < x1 <= width
    assert 0 <= y0 < y1 <= height
    assert box.mirrored().mirrored() == pytest.approx(box)


def test_a_mirrored_box_is_around_the_mirrored_object() -> None:
    assert Box(0.1, 0.2, 0.4, 0.9).mirrored() == pytest.approx((0.6, 0.2, 0.9, 0.9))


def test_pixels_that_a_box_touches_are_whole() -> None:
    touched = np.zeros((10, 20), bool)
    touched[Box(0.26, 0.5, 0.51, 1.0).touched_pixels(20, 10)] = True
    assert touched[5:, 5:11].all()
    assert touched.sum() == 5 * 6


@pytest.mark.parametrize(
    ("box", "is_inside"),
    [
        (Box(0, 0, 1, 1), True),
        (Box(0.2, 0.1, 0.3, 0.9), True),
        (Box(-0.1, 0, 1, 1), False),
        (Box(0, 0, 1.01, 1), False),
        (Box(0.5, 0, 0.5, 1), False),
        (Box(0, 0.8, 1, 0.2), False),
        (Box(float("nan"), 0, 1, 1), False),
        (Box(0, 0, 1, float("nan")), False),
        (Box(0, 0, float("inf"), 1), False),
    ],
)
def test_what_is_no_rectangle_inside_the_image_is_told(box: Box, is_inside: bool) -> None:
    assert box.is_inside is is_inside
