from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shotproof.core.errors import InputError
from shotproof.features.encoder import encoders
from shotproof.features.encoders.pixels import Pixels
from tests.drawn_images import draw_image


@pytest.mark.parametrize(("size", "width", "height"), [(8, 64, 24), (4, 12, 20), (1, 7, 5), (2, 2, 2)])
def test_colors_are_the_mean_over_boxes(tmp_path: Path, size: int, width: int, height: int) -> None:
    path = tmp_path / "image.png"
    draw_image(path, seed=1, width=width, height=height)
    pixels = np.asarray(Image.open(path)) / 255
    boxes = pixels.reshape(size, height // size, size, width // size, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(Pixels(size).load(path), boxes.ravel(), rtol=0, atol=1e-6)


def test_a_white_image_is_all_ones(tmp_path: Path) -> None:
    Image.new("L", (33, 17), 255).save(tmp_path / "white.png")
    np.testing.assert_allclose(Pixels().load(tmp_path / "white.png"), np.ones(8 * 8 * 3), atol=1e-6)


@pytest.mark.parametrize("size", [0, -1, 257, 8.0, "8"])
def test_a_size_that_makes_no_sense_is_refused(size: object) -> None:
    with pytest.raises(InputError, match=r"size: expected a whole number from 1 to 256"):
        encoders.make("pixels", size=size)
