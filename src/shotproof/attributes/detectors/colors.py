"""Colors as people name them: sRGB to CIELAB, and CIELAB to the eleven basic color terms.

Powers, cube roots and arc tangents of floating-point numbers differ between machines in the last digit, and words must
not. So pixels are converted in integer arithmetic, to multiples of 1/64, and hues are compared without computing them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

TERMS = ("black", "white", "grey", "red", "orange", "yellow", "green", "blue", "purple", "pink", "brown")

STEPS = 64  # lightness, a, b and chroma are multiples of 1/64: sums of a small image's values are exact

# sRGB's transfer curve for each of the 256 values of a channel, in units of 1 / LINEAR_UNIT, and its primaries in CIE
# XYZ (D65), in units of 1e-7. No entry is near a tie, so all machines round the curve to the same integers.
LINEAR_UNIT = 1 << 24
CURVE = tuple(
    value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in (n / 255 for n in range(256))
)
_LINEAR = np.array([round(LINEAR_UNIT * value) for value in CURVE])
_TO_XYZ = ((4124564, 3575761, 1804375), (2126729, 7151522, 721750), (193339, 1191920, 9503041))
_ROOT_UNIT = 1 << 20  # cube roots are in units of 1 / _ROOT_UNIT
_DIRECTION_LENGTH = 1 << 20


def cielab(rgb: npt.NDArray[np.uint8]) -> tuple[Floats, Floats, Floats]:
    """Convert sRGB pixels [..., 3] to lightness (0 to 100), a and b, each [...]; all are multiples of 1/64."""
    red, green, blue = (_LINEAR[rgb[..., channel]] for channel in range(3))
    x, y, z = (_response(_divide(u * red + v * green + w * blue, u + v + w)) for u, v, w in _TO_XYZ)
    lightness = _divide(116 * STEPS * y, _ROOT_UNIT) - 16 * STEPS
    a, b = _divide(500 * STEPS * (x - y), _ROOT_UNIT), _divide(200 * STEPS * (y - z), _ROOT_UNIT)
    return lightness / STEPS, a / STEPS, b / STEPS


def chroma(a: Floats, b: Floats) -> Floats:
    """Measure how colorful pixels are: 0 for a grey, above 100 for the purest red; multiples of 1/64."""
    # All machines round square roots correctly, and the squares are exact.
    rounded: Floats = np.round(np.sqrt(a**2 + b**2) * STEPS) / STEPS
    return rounded


def color_terms(lightness: Floats, a: Floats, b: Floats) -> npt.NDArray[np.int64]:
    """Return the index in TERMS of each pixel's color, by the first rule that holds; hues are in degrees."""
    strength = chroma(a, b)
    hue = _Hue(a, b)
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


class _Hue:
    """Hues of pixels, from 0 to 360 degrees, that can only be compared: no arc tangent is needed for that.

    a, b: exact multiples of 1/64
    """

    def __init__(self, a: Floats, b: Floats) -> None:
        self.a, self.b = a, b
        self.in_upper_half = (b > 0) | ((b == 0) & (a >= 0))

    def __lt__(self, degrees: float) -> npt.NDArray[np.bool_]:
        angle = math.radians(degrees)
        x, y = round(math.cos(angle) * _DIRECTION_LENGTH), round(math.sin(angle) * _DIRECTION_LENGTH)
        is_before = self.a * y - self.b * x > 0  # if both are in the same half
        same_half = self.in_upper_half == (degrees < 180)
        return np.where(same_half, is_before, self.in_upper_half)


def _response(linear: Integers) -> Integers:
    """Compute CIELAB's cube root, with its straight line near black, in units of 1 / _ROOT_UNIT."""
    cube = linear * (_ROOT_UNIT**3 // LINEAR_UNIT)
    root = np.cbrt(cube.astype(np.float64)).astype(np.int64)  # at most one off, which is mended
    root += (root + 1) ** 3 <= cube
    root -= root**3 > cube
    straight = _divide(24389 * linear + 16 * 27 * LINEAR_UNIT, 27 * 116 * LINEAR_UNIT // _ROOT_UNIT)
    return np.where(24389 * linear > 216 * LINEAR_UNIT, root, straight)


def _divide(numerator: Integers, denominator: int) -> Integers:
    """Divide and round to the nearest integer."""
    return (numerator + denominator // 2) // denominator
