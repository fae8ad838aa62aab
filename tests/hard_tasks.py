"""A small world with known context, random tasks in it, and others with the same queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.core.records import Maker
from shotproof.features.encoder import encode
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import FACTORS, ShapesWorld

WORLD = ShapesWorld(classes=8, items=40)


def pictured(folder: Path) -> Catalog:
    """The world's catalog with a picture of one color for each item, which is quicker to draw than shapes."""
    catalog = WORLD.catalog(folder)
    for path in catalog.paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(path)
    return catalog


def leaning_features(share: float, factors: Sequence[str] = tuple(FACTORS), seed: int = 0) -> Features:
    """Features of the world's items that lean on some of its factors."""
    return encode(WORLD.catalog(), DialEncoder(share, factors=factors, noise=2.0, seed=seed))


def random_tasks(tasks: int = 40) -> TaskSet:
    """5 ways, 5 shots, 8 queries."""
    return sample(WORLD.catalog(), "random", shot=5, query=8, tasks=tasks)


def with_other_supports(tasks: TaskSet, sampler: str, seed: int = 1) -> TaskSet:
    """The same classes and queries, and other items of the class as support."""
    random = np.random.default_rng(seed)
    catalog: Catalog = WORLD.catalog()
    items = np.asarray(catalog.items)
    labels = np.asarray(catalog.table.column("label").to_pylist())
    rows = []
    for row in tasks.table.to_pylist():
        free = np.setdiff1d(items[labels == row["label"]], row["query"])
        rows.append({**row, "support": random.permutation(free)[: len(row["support"])].tolist()})
    record = replace(tasks.record, name=sampler, sampler=Maker(sampler, sampler), match=tasks.digest)
    return TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), record)
