"""Made-up files for tests of the report: a catalog with drawn images, task sets, and results with a known accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.core.records import (
    CatalogRecord,
    FeaturesRecord,
    Maker,
    MethodRecord,
    ResultsRecord,
    Source,
    TasksRecord,
)
from shotproof.core.spelling import write_call
from shotproof.features.features import Features
from shotproof.pipeline.study import Study
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

LABELS = ("ant", "bee", "cat", "dog")
ATTRIBUTES = ("green:adj", "water:noun", "sand:noun", "red:adj")
ITEMS = 8


def make_catalog(folder: Path, labels: Sequence[str] = LABELS, name: str = "") -> Catalog:
    """One class per label, with `ITEMS` images of one color each."""
    rows = []
    for c, label in enumerate(labels):
        for i in range(ITEMS):
            path = f"{c}-{i}.png"
            Image.new("RGB", (120, 60), (60 * c, 30 * i, 90)).save(folder / path)
            rows.append({"item": f"{label}/{i}", "path": path, "label": label, "split": "test"})
    return Catalog(pa.Table.from_pylist(rows), folder, CatalogRecord(name=name))


def make_tasks(
    catalog: Catalog,
    sampler: str = "fewstab",
    *,
    shot: int = 1,
    tasks: int = 20,
    seed: int = 0,
    attributes: Sequence[str] = ATTRIBUTES,
    options: Mapping[str, Any] | None = None,
    detector: str = "photometric",
) -> TaskSet:
    """3-way tasks with 4 queries per class; the attributes are planted at random unless the sampler is `random`."""
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
    sources = {"catalog": Source(catalog.digest, catalog.record.name)}
    if sampler == "fewstab":
        sources["attributes"] = Source(f"attributes-by-{detector}", detector)
    record = TasksRecord(
        sources=sources,
        sampler=Maker(sampler, write_call(sampler, options or {}), options or {}),
        split="test",
        way=3,
        shot=shot,
        query=4,
        tasks=tasks,
        seed=seed,
    )
    return TaskSet(pa.Table.from_pylist(rows), record)


def make_results(tasks: TaskSet, encoder: str, methods: Mapping[str, float], seed: int = 0) -> Results:
    """Every query is answered correctly with the probability given for its method."""
    random = np.random.default_rng([seed, len(encoder)])
    rows = []
    for method, accuracy in methods.items():
        for row in tasks.table.to_pylist():
            missed = np.flatnonzero(random.random(len(row["query"])) >= accuracy).tolist()
            counts = {"n_query": len(row["query"]), "n_correct": len(row["query"]) - len(missed), "missed": missed}
            counts["answered"] = [(row["slot"] + 1 + position % 2) % 3 for position in missed]
            rows.append({"method": method, **{name: row[name] for name in ("task", "slot", "label")}, **counts})
    record = ResultsRecord(
        sources={"tasks": Source(tasks.digest), "features": Source(f"features-of-{encoder}")},
        tasks=tasks.record,
        features=FeaturesRecord(encoder=Maker(encoder)),
        methods=tuple(MethodRecord(name) for name in methods),
        seed=seed,
    )
    return Results(pa.Table.from_pylist(rows), record)


def make_experiment(
    folder: Path,
    labels: Sequence[str] = LABELS,
    attributes: Sequence[str] = ATTRIBUTES,
    encoder: str = "pixels",
    name: str = "",
) -> tuple[list[Results], list[TaskSet], Catalog]:
    """Two encoders and two methods on random and FewSTAB tasks of 1 and 2 shots."""
    catalog = make_catalog(folder, labels, name)
    tasks = [
        make_tasks(catalog, sampler, shot=shot, seed=10 * shot, tasks=30, attributes=attributes)
        for shot in (1, 2)
        for sampler in ("random", "fewstab")
    ]
    results = [
        make_results(task, used, {"ncc": 0.9 - loss, "ridge": 0.8 - loss / 2}, seed)
        for seed, task in enumerate(tasks)
        for used, loss in ((encoder, 0.4 * (seed % 2)), ("other encoder", 0.1 * (seed % 2)))
    ]
    return results, tasks, catalog


def write_report(
    path: Path,
    results: Results | Sequence[Results],
    *,
    tasks: Sequence[TaskSet] = (),
    catalog: Catalog | Sequence[Catalog] = (),
    features: Sequence[Features] = (),
    attributes: Sequence[Attributes] = (),
    intervals: str | Sequence[str] | None = None,
    metric: str | None = None,
    placebo: bool | None = None,
    **shown: Any,
) -> Comparison:
    """Compare results, with what they were made from, and write the comparison as a page."""
    listed = [results] if isinstance(results, Results) else results
    catalogs = [catalog] if isinstance(catalog, Catalog) else catalog
    study = Study.of([*listed, *tasks, *catalogs, *features, *attributes])
    comparison = study.compare(intervals=intervals, metric=metric, placebo=placebo)
    study.report(path, comparison=comparison, **shown)
    return comparison
