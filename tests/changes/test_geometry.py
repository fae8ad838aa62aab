from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from shotproof.changes.layers import GRAY
from tests.changes.every_change import apply, noisy, smooth

DEGREES = (10, 20, 30, 45, 60)
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


@pytest.mark.parametrize("severity", range(1, 6))
def test_rotation_turns_three_colors_about_the_middle(severity: int) -> None:
    """Blue, with a red spot to the right of the middle and a green one above it: both turn by the same angle."""
    side, reach = 101, 30
    pixels = np.full((side, side, 3), BLUE, np.uint8)
    y, x = np.mgrid[:side, :side] - side // 2
    pixels[np.hypot(x - reach, y) < 6] = RED
    pixels[np.hypot(x, y + reach) < 6] = GREEN
    turned = apply("rotation", severity, pixels)
    angles = []
    for color in (RED, GREEN):
        is_color = (np.abs(turned.astype(int) - color) < 60).all(axis=2)
        is_color &= np.hypot(x, y) < side // 2 - 8  # not a reflection
        down, right = np.argwhere(is_color).mean(axis=0) - side // 2
        assert np.hypot(down, right) == pytest.approx(reach, abs=0.7)
        angles.append(np.degrees(np.arctan2(-down, right)))
    assert abs(angles[0]) == pytest.approx(DEGREES[severity - 1], abs=1.5)
    assert angles[1] - angles[0] == pytest.approx(90, abs=1.5)


@pytest.mark.parametrize(("height", "width"), [(40, 70), (57, 33)])
def test_rotation_is_that_of_pillow_without_its_border(height: int, width: int) -> None:
    pixels, border = noisy(height, width), 60
    padded = np.pad(pixels, ((border, border), (border, border), (0, 0)), mode="symmetric")
    middle = (slice(border, border + height), slice(border, border + width))
    for severity, degrees in enumerate(DEGREES, 1):
        either_way = [
            np.asarray(Image.fromarray(padded).rotate(sign * degrees, Image.Resampling.BICUBIC))[middle]
            for sign in (1, -1)
        ]
        turned = apply("rotation", severity, pixels).astype(int)
        assert min(np.abs(turned - expected).max() for expected in either_way) <= 1  # halves are rounded either way


def test_corners_show_the_image_and_no_black() -> None:
    pixels = np.maximum(smooth(40, 70), 30)
    for severity in range(1, 6):
        assert apply("rotation", severity, pixels).min() > 15


def test_items_turn_either_way() -> None:
    pixels = np.zeros((21, 61, 3), np.uint8)
    pixels[10, 40:] = 255
    is_higher = []
    for value in range(12):
        pixels[0, 0] = value  # the draws depend on the content
        is_higher.append(apply("rotation", 3, pixels)[:10].sum() > apply("rotation", 3, pixels)[11:].sum())
    assert 0 < sum(is_higher) < 12


def test_a_crop_is_a_part_of_the_image() -> None:
    ramp = np.linspace(0, 250, 200)
    pixels = np.stack(np.broadcast_arrays(ramp[:, None], ramp, np.full((200, 200), 9.0)), axis=2).astype(np.uint8)
    for severity, share in zip(range(1, 6), (0.9, 0.8, 0.7, 0.6, 0.5), strict=True):
        part = apply("crop", severity, pixels).astype(int)
        for channel, axis in ((0, 0), (1, 1)):
            low, high = part[..., channel].min(), part[..., channel].max()
            assert high - low == pytest.approx(250 * share, abs=6)
            assert (np.diff(part[..., channel], axis=axis) >= 0).all()


def test_occlusion_covers_a_square_of_its_share_and_nothing_else() -> None:
    pixels = noisy(50, 80)
    pixels[pixels == GRAY] = GRAY + 1
    for severity, share in zip(range(1, 6), (0.05, 0.1, 0.2, 0.3, 0.4), strict=True):
        changed = apply("occlusion", severity, pixels)
        is_covered = (changed == GRAY).all(axis=2)
        assert is_covered.mean() == pytest.approx(share, abs=0.02)
        rows, columns = (np.flatnonzero(is_covered.any(axis=axis)) for axis in (1, 0))
        assert len(rows) == len(columns)
        assert is_covered[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        np.testing.assert_array_equal(changed[~is_covered], pixels[~is_covered])
