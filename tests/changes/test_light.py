from __future__ import annotations

import colorsys

import numpy as np
import pytest

from tests.changes.every_change import SEVERITIES, apply, noisy, smooth

LUMA = np.array([0.299, 0.587, 0.114])


@pytest.mark.parametrize(("style", "sign"), [("brighter", 1), ("darker", -1)])
def test_the_value_moves_and_hue_and_saturation_stay(style: str, sign: int) -> None:
    """Against the formulas of the standard library."""
    pixels = np.maximum(smooth(12, 9), 1)
    for severity in SEVERITIES:
        changed = apply(f"light(style='{style}')", severity, pixels)
        for before, after in zip(pixels.reshape(-1, 3), changed.reshape(-1, 3), strict=True):
            hue, saturation, value = colorsys.rgb_to_hsv(*before / 255)
            moved = min(max(value + sign * 0.1 * severity, 0), 1)
            expected = np.array(colorsys.hsv_to_rgb(hue, saturation, moved)) * 255
            np.testing.assert_allclose(after, expected, atol=0.51)


def test_black_becomes_gray_in_more_light() -> None:
    black = np.zeros((3, 3, 3), np.uint8)
    assert (apply("light", 2, black) == 51).all()
    assert (apply("light(style='darker')", 2, black) == 0).all()


@pytest.mark.parametrize(("severity", "share"), [(1, 0.4), (5, 0.05)])
def test_contrast_shrinks_about_the_mean(severity: int, share: float) -> None:
    pixels = smooth(40, 30)
    changed = apply("light(style='contrast')", severity, pixels)
    mean = pixels.mean(axis=(0, 1))
    np.testing.assert_allclose(changed, mean + share * (pixels - mean), atol=0.51)


def test_fog_is_lighter_where_it_was_dark() -> None:
    pixels = smooth(60, 60)
    foggy = apply("light(style='fog')", 3, pixels).astype(float)
    assert foggy[pixels < 60].mean() > pixels[pixels < 60].mean() + 20
    assert foggy.std() < pixels.std()


def test_gray_keeps_the_luma_and_loses_the_color() -> None:
    pixels = noisy(20, 20)
    for severity in SEVERITIES:
        changed = apply("color(style='gray')", severity, pixels)
        np.testing.assert_allclose(changed @ LUMA, pixels @ LUMA, atol=0.51)
    assert (np.ptp(changed, axis=2) == 0).all()


def test_other_hues_keep_the_luma_and_grays() -> None:
    pixels = (noisy(20, 20) // 8 + 112).astype(np.uint8)  # far from the borders of the range
    changed = apply("color(style='hue')", 5, pixels)
    np.testing.assert_allclose(changed @ LUMA, pixels @ LUMA, atol=1)
    grays = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], 3, axis=2)
    np.testing.assert_allclose(apply("color(style='hue')", 5, grays), grays, atol=1)


def test_white_balance_is_warmer_or_colder() -> None:
    images = [smooth(10, 10, seed) for seed in range(12)]
    shifts = []
    for pixels in images:
        changed = apply("color(style='white-balance')", 2, pixels).astype(float)
        np.testing.assert_array_equal(changed[..., 1], pixels[..., 1])
        shifts.append(np.sign((changed - pixels).mean(axis=(0, 1))))
    assert {(shift[0], shift[2]) for shift in shifts} == {(1, -1), (-1, 1)}
