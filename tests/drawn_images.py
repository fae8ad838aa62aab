"""Image files that tests draw for themselves, with their catalog."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import Catalog


def draw_image(path: Path, seed: int, width: int = 24, height: int = 16) -> None:
    """Random pixels as PNG, changed long ago, so that its digest is remembered."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    os.utime(path, (1_000_000_000, 1_000_000_000))


def draw_catalog(folder: Path, count: int, width: int = 24, height: int = 16) -> Catalog:
    """So many images in a folder, numbered; those that are there already are left as they are."""
    names = [f"{number:03d}.png" for number in range(count)]
    for number, name in enumerate(names):
        if not (folder / name).exists():
            draw_image(folder / name, number, width, height)
    return catalog_of(folder, names)


def catalog_of(folder: Path, names: list[str]) -> Catalog:
    """The catalog of files in a folder; an item is called as its file."""
    columns = {"item": names, "path": names, "label": ["a"] * len(names), "split": ["test"] * len(names)}
    return Catalog(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), folder)
