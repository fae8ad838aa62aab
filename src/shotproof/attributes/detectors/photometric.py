"""Words that need no model, determined by the light and color of an image alone.

| word | holds if |
|---|---|
| `mostly <color>` | more than half of the image has that color |
| `<color> border` | more than half of a frame, an eighth of the side wide, has that color |
| `dark`, `bright` | the mean lightness is below DARK, above BRIGHT |
| `low contrast` | the standard deviation of the lightness is below LOW_CONTRAST |
| `grey`, `vivid` | the mean chroma is below GREY, above VIVID |
| `plain` | more than PLAIN_SHARE of the steps between neighboring pixels are smaller than PLAIN_STEP |
| `cluttered` | more than CLUTTERED_SHARE of these steps are larger than CLUTTERED_STEP |
| `blurry` | steps change little from pixel to pixel: mean absolute Laplacian below BLURRY times the mean step |
| `portrait`, `landscape` | the image is more than OBLONG times as high as wide, as wide as high |

`<color>` is one of black, white, grey, red, orange, yellow, green, blue, purple, pink, brown. Lightness (0 to 100) and
chroma are CIELAB's, of the image scaled to SIDE x SIDE pixels; an image smaller than that is never called blurry. A
large JPEG is decoded at a part of its size, at least 448 pixels a side.
All thresholds are absolute: the words of an image never depend on the other images.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from shotproof.attributes.detector import ImageDetector
from shotproof.attributes.detectors.colors import TERMS, Floats, chroma, cielab, color_terms
from shotproof.media.images import open_image

SIDE = 64
FRAME = SIDE // 8
DARK, BRIGHT = 38.0, 65.0
LOW_CONTRAST = 11.0
GREY, VIVID = 7.0, 30.0
PLAIN_STEP, PLAIN_SHARE = 3.0, 0.75
CLUTTERED_STEP, CLUTTERED_SHARE = 8.0, 0.3
BLURRY = 2.3
OBLONG = 1.2


@dataclass(frozen=True)
class PhotometricDetector(ImageDetector):
    """Words from light and color."""

    about = "light and color of the image, without a model"

    def words_of(self, path: Path) -> list[str]:
        """Return the words of an image."""
        return photometric_words(open_image(path, side=SIDE))


def photometric_words(image: Image.Image) -> list[str]:
    """Return the words of an RGB image."""
    width, height = image.size
    small = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX))
    lightness, a, b = cielab(small)
    holds = {
        **_colors(color_terms(lightness, a, b)),
        **_light(lightness, chroma(a, b)),
        **_texture(lightness, upscaled=min(width, height) < SIDE),
        "portrait": height > OBLONG * width,
        "landscape": width > OBLONG * height,
    }
    return [word for word, held in holds.items() if held]


def _colors(terms: npt.NDArray[np.int64]) -> dict[str, bool]:
    """Return the colors of the image and of its frame, from the pixels' color terms [SIDE, SIDE]."""
    everywhere = np.bincount(terms.ravel(), minlength=len(TERMS))
    inside = np.bincount(terms[FRAME:-FRAME, FRAME:-FRAME].ravel(), minlength=len(TERMS))
    frame = everywhere - inside
    return {
        **{f"mostly {term}": bool(2 * n > everywhere.sum()) for term, n in zip(TERMS, everywhere, strict=True)},
        **{f"{term} border": bool(2 * n > frame.sum()) for term, n in zip(TERMS, frame, strict=True)},
    }


def _light(lightness: Floats, strength: Floats) -> dict[str, bool]:
    mean = lightness.mean()
    variance = (lightness**2).mean() - mean**2
    return {
        "dark": bool(mean < DARK),
        "bright": bool(mean > BRIGHT),
        "low contrast": bool(variance < LOW_CONTRAST**2),
        "grey": bool(strength.mean() < GREY),
        "vivid": bool(strength.mean() > VIVID),
    }


def _texture(lightness: Floats, upscaled: bool) -> dict[str, bool]:
    steps = np.abs(np.concatenate([np.diff(lightness, axis=0).ravel(), np.diff(lightness, axis=1).ravel()]))
    around = lightness[:-2, 1:-1] + lightness[2:, 1:-1] + lightness[1:-1, :-2] + lightness[1:-1, 2:]
    laplacian = np.abs(4 * lightness[1:-1, 1:-1] - around)
    return {
        "plain": bool((steps < PLAIN_STEP).mean() > PLAIN_SHARE),
        "cluttered": bool((steps > CLUTTERED_STEP).mean() > CLUTTERED_SHARE),
        "blurry": bool(not upscaled and laplacian.mean() < BLURRY * steps.mean()),
    }
