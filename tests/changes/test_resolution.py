from __future__ import annotations

import io

import numpy as np
from PIL import Image

from tests.changes.every_change import apply, smooth


def test_compression_is_that_of_jpeg() -> None:
    pixels = smooth(40, 50)
    for severity, quality in zip(range(1, 6), (25, 18, 15, 10, 7), strict=True):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=quality)
        np.testing.assert_array_equal(apply("compression", severity, pixels), np.asarray(Image.open(file)))


def test_pixelation_has_as_many_colors_as_blocks() -> None:
    pixels = smooth(40, 80)
    for severity, size in ((2, 0.5), (5, 0.25)):
        changed = apply("pixelation", severity, pixels)
        step = round(1 / size)
        means = pixels.reshape(40 // step, step, 80 // step, step, 3).mean(axis=(1, 3))
        np.testing.assert_allclose(changed, means.repeat(step, axis=0).repeat(step, axis=1), atol=1)
