"""Made-up files for tests of the report: a catalog with drawn images, task sets, and results with a known accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.results import Results
from shotproof.tasks.taskset import TaskSet

LABELS = ("ant", "bee", "cat", "dog")
ATTRIBUTES = ("green:adj", "water:noun", "sand:noun", "red:adj")
ITEMS = 8


def make_catalog(folder: Path, labels: Sequence[str] = LABELS) -> Catalog:
    """A class a label, with `ITEMS` images of one colour each."""
    rows = []
    for c, label in enumerate(labels):
        for i in range(ITEMS):
            path = f"{c}-{i}.png"
            Image.new("RGB", (120, 60), (60 * c, 30 * i, 90)).save(folder / path)
            rows.append({"item": f"{label}/{i}", "path": path, "label": label, "split": "test"})
    return Catalog(pa.Table.from_pylist(rows), folder)


def make_tasks(
    catalog: Catalog,
    sampler: str = "fewstab",
    *,
    shot: int = 1,
    tasks: int = 20,
    seed: int = 0,
    attributes: Sequence[str] = ATTRIBUTES,
    options: Mapping[str, Any] | None = None,
) -> TaskSet:
    """3-way tasks with 4 queries a class; the attributes are planted at random unless the sampler is `random`."""
    random = np.random.default_rng(seed)
    items: dict[str, list[str]] = {}
    for item, label in zip(*(catalog.table.column(name).to_pylist() for name in ("item", "label")), strict=True):
        items.setdefault(label, []).append(item)
    rows = []
    for task in range(tasks):
        planted = random.permutation(list(attributes))
        for slot, label in enumerate(random.permutation(list(items))[:3].tolist()):
            chosen = random.permutation(items[label])[: shot + 4].tolist()
            attribute = None if sampler == "random" else str(planted[slot])
            row = {"task": task, "slot": slot, "label": label, "attribute": attribute}
            rows.append({**row, "support": chosen[:shot], "query": chosen[shot:]})
    made_by = {"sampler": sampler, "split": "test", "way": 3, "shot": shot, "query": 4, "tasks": tasks}
    made_from = {"catalog": catalog.digest, **({"attributes": "of-the-images"} if sampler == "fewstab" else {})}
    meta = {"made_by": {**made_by, **(options or {})}, "seed": seed, "from": made_from}
    return TaskSet(pa.Table.from_pylist(rows), meta)


def make_results(tasks: TaskSet, encoder: str, methods: Mapping[str, float], seed: int = 0) -> Results:
    """Every query is answered correctly with the probability given for its method."""
    random = np.random.default_rng([seed, len(encoder)])
    rows = []
    for method, accuracy in methods.items():
        for row in tasks.table.to_pylist():
            missed = np.flatnonzero(random.random(len(row["query"])) >= accuracy).tolist()
            counts = {"n_query": len(row["query"]), "n_correct": len(row["query"]) - len(missed), "missed": missed}
            rows.append({"method": method, **{name: row[name] for name in ("task", "slot", "label")}, **counts})
    meta = {
        "made_by": {"methods": [{"name": name} for name in methods], "seed": seed},
        "tasks": {**tasks.meta, "digest": tasks.digest},
        "features": {"encoder": encoder, "digest": f"features-of-{encoder}"},
    }
    return Results(pa.Table.from_pylist(rows), meta)


def make_experiment(
    folder: Path, labels: Sequence[str] = LABELS, attributes: Sequence[str] = ATTRIBUTES, encoder: str = "pixels"
) -> tuple[list[Results], list[TaskSet], Catalog]:
    """Two encoders and two methods on random and FewSTAB tasks of 1 and 2 shots."""
    catalog = make_catalog(folder, labels)
    tasks = [
        make_tasks(catalog, sampler, shot=shot, seed=10 * shot, tasks=30, attributes=attributes)
        for shot in (1, 2)
        for sampler in ("random", "fewstab")
    ]
    results = [
        make_results(given, name, {"ncc": 0.9 - loss, "ridge": 0.8 - loss / 2}, seed)
        for seed, given in enumerate(tasks)
        for name, loss in ((encoder, 0.4 * (seed % 2)), ("other encoder", 0.1 * (seed % 2)))
    ]
    return results, tasks, catalog
