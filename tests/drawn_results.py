"""Made-up task sets and results with a known accuracy, without any data behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from shotproof.core.records import FeaturesRecord, Maker, MethodRecord, ResultsRecord, Source, TasksRecord
from shotproof.core.spelling import parse_call
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

LABELS = ("ant", "bee", "cat", "dog")
ITEMS, WAY, QUERY = 8, 3, 4


def draw_tasks(
    sampler: str = "random",
    *,
    data_set: str = "birds",
    shot: int = 1,
    tasks: int = 20,
    seed: int = 0,
    detector: str | None = None,
    match: str | None = None,
    split: str = "test",
    like: TaskSet | None = None,
) -> TaskSet:
    """3-way tasks with 4 queries per class, of a sampler's spelling; of `fewstab`, with a detector's attributes.

    With `like`, they are matched with the tasks of another set, as many.
    """
    if like is not None:
        tasks, seed, match = len(like), like.record.seed or 0, like.match
    # Another sampler or data set has other tasks; the same one with another seed, too.
    told_apart = f"{sampler}{data_set}{shot}{detector}{like.digest if like else ''}"
    random = np.random.default_rng([seed, *told_apart.encode()])
    rows = []
    for task in range(tasks):
        for slot, label in enumerate(random.permutation(LABELS)[:WAY].tolist()):
            chosen = [f"{label}/{item}" for item in random.permutation(ITEMS)[: shot + QUERY]]
            row = {"task": task, "slot": slot, "label": label, "attribute": None}
            rows.append({**row, "support": chosen[:shot], "query": chosen[shot:]})
    sources = {"catalog": Source(f"catalog-of-{data_set}", data_set)}
    if detector is not None:
        sources["attributes"] = Source(f"attributes-of-{detector}", detector)
    if like is not None:
        sources["like"] = Source(like.digest)
    name, options = parse_call(sampler)
    sizes: dict[str, Any] = {"way": WAY, "shot": shot, "query": QUERY, "tasks": tasks}
    record = TasksRecord(
        sampler, sources, sampler=Maker(name, sampler, options), split=split, seed=seed, match=match, **sizes
    )
    return TaskSet(pa.Table.from_pylist(rows), record)


def draw_results(tasks: TaskSet, methods: Mapping[str, float], encoder: str = "pixels", seed: int = 0) -> Results:
    """Every query is answered correctly with the probability given for its method."""
    random = np.random.default_rng([seed, len(encoder)])
    rows = []
    for method, accuracy in methods.items():
        for row in tasks.table.to_pylist():
            correct = int((random.random(len(row["query"])) < accuracy).sum())
            counts = {"n_query": len(row["query"]), "n_correct": correct}
            rows.append({"method": method, **{name: row[name] for name in ("task", "slot", "label")}, **counts})
    record = ResultsRecord(
        sources={"tasks": Source(tasks.digest), "features": Source(f"features-of-{encoder}", encoder)},
        tasks=tasks.record,
        features=FeaturesRecord(encoder=Maker(encoder)),
        methods=tuple(map(MethodRecord, methods)),
        seed=seed,
    )
    return Results(pa.Table.from_pylist(rows), record)


def values_of(results: Results, method: str, metric: str) -> np.ndarray:
    """Acc or wAcc of each task in percent, from the rows."""
    shares: dict[int, list[float]] = {}
    for row in results.table.to_pylist():
        if row["method"] == method:
            shares.setdefault(row["task"], []).append(100 * row["n_correct"] / row["n_query"])
    return np.array([np.mean(s) if metric == "acc" else min(s) for s in shares.values()])
