from __future__ import annotations

import colorsys
import hashlib
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageColor

from shotproof.attributes.detectors.colors import CURVE, LINEAR_UNIT, TERMS, _Hue, chroma, cielab, color_terms

CHANNEL = st.integers(0, 255)

# CSS colors whose names end in a basic term that they are not.
MISNAMED = {
    "aliceblue": "white",
    "darkslategray": "blue",
    "darkslategrey": "blue",
    "greenyellow": "green",
    "indianred": "brown",
    "lightseagreen": "blue",
    "mediumvioletred": "purple",
    "navajowhite": "yellow",
    "orangered": "orange",
    "palevioletred": "pink",
    "rosybrown": "pink",
}


def term_of(*rgb: int) -> str:
    return TERMS[int(color_terms(*cielab(np.array([rgb], dtype=np.uint8)))[0])]


@pytest.mark.parametrize(
    ("rgb", "lab"),
    [  # CIE 1976 L*a*b* of sRGB colors under D65, as published
        ((255, 255, 255), (100, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((255, 255, 0), (97.14, -21.55, 94.48)),
        ((0, 255, 255), (91.11, -48.09, -14.13)),
        ((255, 0, 255), (60.32, 98.23, -60.82)),
        ((128, 128, 128), (53.59, 0, 0)),
    ],
)
def test_cielab_gives_the_published_values(rgb: tuple[int, ...], lab: tuple[float, ...]) -> None:
    assert [float(value) for value in cielab(np.array(rgb, dtype=np.uint8))] == pytest.approx(lab, abs=0.03)


def test_css_colors_have_the_term_that_their_name_ends_in() -> None:
    named = {
        name: next(term for term in TERMS if name.replace("gray", "grey").endswith(term))
        for name in ImageColor.colormap
        if name.replace("gray", "grey").endswith(TERMS)
    }
    assert len(named) > 60
    assert {name: term_of(*ImageColor.getrgb(name)) for name in named} == named | MISNAMED


@given(CHANNEL)
def test_equal_channels_are_black_grey_or_white(level: int) -> None:
    assert term_of(level, level, level) == ("black" if level < 49 else "grey" if level < 213 else "white")


def test_pure_hues_run_through_the_spectrum_in_order() -> None:
    hues = [colorsys.hsv_to_rgb(degrees / 360, 1, 0.9) for degrees in range(360)]
    terms = [term_of(*(round(255 * channel) for channel in rgb)) for rgb in hues]
    runs = [term for term, _ in itertools.groupby(terms)]
    assert runs == ["red", "orange", "yellow", "green", "blue", "purple", "pink", "red"]


@given(CHANNEL, CHANNEL, CHANNEL)
def test_every_color_has_one_term_and_no_chroma_means_no_hue(red: int, green: int, blue: int) -> None:
    lightness, a, b = cielab(np.array([[red, green, blue]], dtype=np.uint8))
    term = term_of(red, green, blue)
    assert term in TERMS
    if chroma(a, b)[0] < 12:
        assert term in ("black", "grey", "white")
    if lightness[0] > 90:
        assert term not in ("black", "purple", "red")


def every_fifth_color() -> np.ndarray:
    """All sRGB colors whose channels are multiples of 5, [52 ** 3, 3]."""
    return np.stack(np.meshgrid(*3 * [np.arange(0, 256, 5, dtype=np.uint8)]), axis=-1).reshape(-1, 3)


def test_no_rounded_constant_is_near_a_tie() -> None:
    fractions = np.array([LINEAR_UNIT * value % 1 for value in CURVE])
    assert np.abs(fractions - 0.5).min() > 1e-4


def test_integers_agree_with_the_formula_in_floating_point_numbers() -> None:
    rgb = every_fifth_color()
    linear = np.where(rgb / 255 <= 0.04045, rgb / 255 / 12.92, ((rgb / 255 + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    ratio = linear @ (to_xyz / to_xyz.sum(axis=1, keepdims=True)).T
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116).T
    expected = [116 * y - 16, 500 * (x - y), 200 * (y - z)]
    for value, exact in zip(cielab(rgb), expected, strict=True):
        assert (value * 64 == np.round(value * 64)).all()
        assert np.abs(value - exact).max() < 0.55 / 64


def test_hues_are_compared_as_their_arc_tangents_are() -> None:
    a, b = (side.ravel() for side in np.meshgrid(np.arange(-40, 41) / 64, np.arange(-40, 41) / 64))
    a, b = a[(a != 0) | (b != 0)], b[(a != 0) | (b != 0)]  # grey has no hue
    hue = np.degrees(np.arctan2(b, a)) % 360
    for degrees in (22, 43, 80, 98, 112, 185, 304, 309, 352):
        assert ((_Hue(a, b) < degrees) == (hue < degrees)).all()


def test_colors_are_the_same_on_every_machine() -> None:
    lightness, a, b = cielab(every_fifth_color())
    values = np.stack([64 * lightness, 64 * a, 64 * b, color_terms(lightness, a, b)]).astype("<i4")
    assert hashlib.sha256(values.tobytes()).hexdigest()[:16] == "3e8e9cc3dc3b0426"
    assert math.isclose(chroma(a, b).max(), 133.8, abs_tol=0.1)
