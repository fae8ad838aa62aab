from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.core.errors import UnknownName
from shotproof.masks.cutter import Box, cutters

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


def test_an_unknown_cutter_is_told_the_nearest() -> None:
    with pytest.raises(UnknownName, match="unknown cutter 'grabcutt': did you mean 'grabcut'"):
        cutters.make("grabcutt")
