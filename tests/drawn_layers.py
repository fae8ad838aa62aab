"""Made pictures whose layers are known: a disc of one color on a background of another, with masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import Catalog

Pixels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

COLORS = ((230, 40, 40), (40, 200, 60), (50, 70, 220), (230, 210, 40))
GROUNDS = ((90, 20, 110), (20, 110, 100), (120, 80, 20), (150, 150, 160))


def disc(height: int = 48, width: int = 64, radius: float = 0.3, across: float = 0.5, down: float = 0.5) -> Mask:
    """The mask of a disc; its radius is a share of the shorter side, its middle one of the width and height."""
    y, x = np.mgrid[:height, :width]
    return np.asarray(np.hypot(y - down * height, x - across * width) < radius * min(height, width))


def picture(mask: Mask, color: tuple[int, int, int], ground: tuple[int, int, int], noise: int, seed: int) -> Pixels:
    """An object on a background that has noise, [height, width, 3]."""
    noisy = np.random.default_rng(seed).integers(-noise, noise + 1, (*mask.shape, 3)) + ground
    return np.where(mask[..., None], color, noisy).clip(0, 255).astype(np.uint8)


def draw_masked(folder: Path, classes: int = 4, items: int = 6, correlated: bool = True) -> Catalog:
    """Pictures with masks: the object's color is that of the class, and so is the background's if it is correlated."""
    (folder / "masks").mkdir(parents=True, exist_ok=True)
    rows = [(number, item) for number in range(classes) for item in range(items)]
    columns: dict[str, list[object]] = {name: [] for name in ("item", "path", "label", "split", "mask", "ground")}
    for number, item in rows:
        ground = number if correlated else (number + item) % len(GROUNDS)
        mask = disc(across=0.4 + 0.04 * (item % 6), down=0.5)
        name = f"{number}-{item}.png"
        pixels = picture(mask, COLORS[number], GROUNDS[ground], 8, seed=100 * number + item)
        Image.fromarray(pixels).save(folder / name)
        Image.fromarray(mask).save(folder / "masks" / name)
        values = (name, name, f"class{number}", "test", f"masks/{name}", ground)
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return Catalog(pa.table(columns), folder)
