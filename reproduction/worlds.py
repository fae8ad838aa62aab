"""Write the worlds of the tables: `python -m reproduction.worlds`, into reproduction/worlds."""

from __future__ import annotations

import os
from pathlib import Path

from shotproof.features.features import Features
from shotproof.worlds.gaussian import GaussianWorld
from shotproof.worlds.shapes import ShapesWorld

WORLDS = Path(os.path.relpath(Path(__file__).parent)) / "worlds"
CLASSES, ITEMS = 40, 60


def write_worlds(folder: Path = WORLDS, classes: int = CLASSES, items: int = ITEMS) -> None:
    """Write pictures of shapes, and Gaussian classes of which one encoder sees eight dimensions and one four."""
    shapes, gaussian = folder / "shapes", folder / "gaussian"
    shapes.mkdir(parents=True, exist_ok=True)
    ShapesWorld(classes=classes, items=items).write(shapes).write(shapes / "catalog.parquet")
    gaussian.mkdir(parents=True, exist_ok=True)
    catalog, eight, _ = GaussianWorld().draw(classes, items)
    catalog.write(gaussian / "catalog.parquet")
    eight.write(gaussian / "eight.parquet")
    Features.from_array(list(catalog.items), eight.array[:, :4]).write(gaussian / "four.parquet")


if __name__ == "__main__":
    write_worlds()
