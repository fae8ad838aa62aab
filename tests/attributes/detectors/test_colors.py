from __future__ import annotations

import colorsys
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageColor

from shotproof.attributes.detectors.colors import TERMS, chroma, cielab, color_terms

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
