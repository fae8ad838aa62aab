"""A small run with a search for a cure: shapes without pictures, whose classifier relies on words."""

from __future__ import annotations

from pathlib import Path

from shotproof.catalog.catalog import Catalog
from shotproof.worlds.shapes import ShapesWorld

WORLD = ShapesWorld(classes=20, train_classes=12, items=26)
ENCODER = "dial(share=0.75, dimensions=32)"
EXPERIMENT = f"""
[catalog]
file = "catalog.parquet"
[attributes]
file = "words.parquet"
[features]
encoders = ["{ENCODER}"]
[tasks]
split = "test"
way = 3
shots = [2]
query = 4
tasks = 60
[evaluate]
methods = ["ncc"]
[cure]
remedies = ["nap(by='words', directions=(10,))", "preprocess", "center-contexts", "encoder"]
tasks = 20
[runtime]
cache = "cache"
workers = 1
[output]
folder = "out"
intervals = ["sampler"]
"""


def world_catalog(root: Path = Path()) -> Catalog:
    """The items of the world; the background is the context."""
    catalog = WORLD.catalog(root)
    return Catalog(catalog.table.append_column("context", catalog.table.column("background")), root, catalog.record)


def write_world(folder: Path) -> Path:
    """Write the data, and return the file of the experiment on it."""
    world_catalog(folder).write(folder / "catalog.parquet")
    WORLD.attributes().write(folder / "words.parquet")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    return folder / "experiment.toml"
