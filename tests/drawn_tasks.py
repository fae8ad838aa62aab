"""Tasks for tests of methods: a fixture by formula, and random ones, as tensors and as task sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from shotproof.features.features import Features
from shotproof.tasks.taskset import TaskSet


class Batch(NamedTuple):
    """What `Method.scores` takes."""

    support: Tensor
    labels: Tensor
    query: Tensor
    way: int


def formula(amplitude: float = 1.2) -> tuple[Batch, Tensor]:
    """One task of 3 classes, 2 shots, 4 queries and 8 dimensions, and the queries' labels: [1, 12]."""
    c, i, j = np.meshgrid(np.arange(3), np.arange(6), np.arange(8), indexing="ij")
    angle = 1.7 * (i + 1) + 2.3 * (j + 1) + 0.61 * (c + 1) * (i + 1)
    values = torch.from_numpy(np.cos(0.9 * (c + 1) * (j + 1)) + amplitude * np.sin(angle))
    labels = torch.arange(3).unsqueeze(0)
    batch = Batch(
        values[None, :, :2].flatten(1, 2), labels.repeat_interleave(2, 1), values[None, :, 2:].flatten(1, 2), 3
    )
    return batch, labels.repeat_interleave(4, 1)


def draw(seed: int = 0, tasks: int = 8, shots: tuple[int, ...] = (3, 1, 4, 2), queries: int = 9, d: int = 12) -> Batch:
    """Random tasks with unequal shots per class and shuffled rows, in float64."""
    random = np.random.default_rng(seed)
    labels = np.stack([random.permutation(np.repeat(np.arange(len(shots)), shots)) for _ in range(tasks)])
    means = random.normal(size=(tasks, len(shots), d)) * 0.7
    support = np.take_along_axis(means, labels[..., None], 1) + random.normal(size=(tasks, labels.shape[1], d))
    query = means[:, random.integers(0, len(shots), queries)] + random.normal(size=(tasks, queries, d))
    return Batch(torch.from_numpy(support), torch.from_numpy(labels), torch.from_numpy(query), len(shots))


def as_maps(batch: Batch, height: int = 2, width: int = 2) -> Batch:
    """The same numbers seen as maps: rows of d dimensions become d / (height width) channels."""
    support, query = (rows.unflatten(-1, (-1, height, width)) for rows in (batch.support, batch.query))
    return batch._replace(support=support, query=query)


def draw_task_set(
    seed: int = 0, tasks: int = 20, classes: int = 5, items: int = 10, d: int = 16
) -> tuple[TaskSet, Features]:
    """Tasks of varying way, shots and queries, numbered with gaps, and features for more items than occur."""
    random = np.random.default_rng(seed)
    names = [[f"c{c}/i{i:02d}" for i in range(items)] for c in range(classes)]
    values = 0.5 * random.normal(size=(classes, 1, d)) + random.normal(size=(classes, items, d))
    rows: list[dict[str, Any]] = []
    for task in range(tasks):
        for slot, c in enumerate(random.choice(classes, random.integers(2, 4), replace=False)):
            shot, queries = random.integers(1, 4), random.integers(1, 6)
            chosen = [names[c][i] for i in random.permutation(items)[: shot + queries]]
            row = {"task": 3 * task, "slot": slot, "label": f"c{c}", "attribute": None}
            rows.append({**row, "support": chosen[:shot], "query": chosen[shot:]})
    table = pa.Table.from_pylist(rows)
    table = table.set_column(3, "attribute", table.column("attribute").cast(pa.string()))
    flat = [name for block in names for name in block]
    return TaskSet(table), Features.from_array(flat, values.reshape(-1, d), name="drawn")
