"""Colors as people name them: sRGB to CIELAB, and CIELAB to the eleven basic color terms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

TERMS = ("black", "white", "grey", "red", "orange", "yellow", "green", "blue", "purple", "pink", "brown")

# sRGB's transfer curve for each of the 256 values of a channel, and its primaries in CIE XYZ (D65).
_CODE = np.arange(256) / 255
_LINEAR = np.where(_CODE <= 0.04045, _CODE / 12.92, ((_CODE + 0.055) / 1.055) ** 2.4)
_TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))


def cielab(rgb: npt.NDArray[np.uint8]) -> tuple[Floats, Floats, Floats]:
    """Lightness (0 to 100), a and b of sRGB pixels [..., 3], each [...].

    They are rounded to 1/64: sums of a small image's values are then exact, whatever the machine and the order.
    """
    red, green, blue = (_LINEAR[rgb[..., channel]] for channel in range(3))
    x, y, z = (_response((u * red + v * green + w * blue) / (u + v + w)) for u, v, w in _TO_XYZ)
    return _rounded(116 * y - 16), _rounded(500 * (x - y)), _rounded(200 * (y - z))


def chroma(a: Floats, b: Floats) -> Floats:
    """How colorful: 0 for a grey, above 100 for the purest red; rounded as `cielab`."""
    return _rounded(np.hypot(a, b))


def color_terms(lightness: Floats, a: Floats, b: Floats) -> npt.NDArray[np.int64]:
    """Return the index in TERMS of each pixel's color: the first rule that holds; hues are in degrees."""
    strength = chroma(a, b)
    hue = np.degrees(np.arctan2(b, a)) % 360
    rules = [
        ("black", (lightness < 20) & (strength < 20)),
        ("white", (lightness >= 85) & (strength < 12)),
        ("grey", strength < 12),
        ("pink", (hue < 22) & (lightness >= 50)),
        ("red", hue < 22),
        ("pink", (hue < 43) & (lightness >= 63) & (strength < 60)),
        ("red", (hue < 43) & (strength >= 60)),
        ("orange", (hue < 80) & ((lightness >= 60) & (strength >= 55) | (strength >= 80))),
        ("brown", hue < 80),
        ("yellow", (hue < 112) & ((lightness >= 60) & (strength >= 40) | (lightness >= 85))),
        ("brown", hue < 98),
        ("green", hue < 185),
        ("blue", (hue < 304) | (hue < 309) & (lightness < 45)),
        ("purple", (hue < 352) & (lightness < 60)),
        ("pink", lightness >= 50),
    ]
    codes = [TERMS.index(term) for term, _ in rules]
    return np.select([holds for _, holds in rules], codes, default=TERMS.index("red"))


def _response(linear: Floats) -> Floats:
    """CIELAB's cube root, with its straight line near black."""
    return np.where(linear > 216 / 24389, np.cbrt(linear), (24389 / 27 * linear + 16) / 116)


def _rounded(values: Floats) -> Floats:
    rounded: Floats = np.round(values * 64) / 64
    return rounded
