"""Tasks with features, for the tests of searches for supports."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.tasks.candidates import Candidates, ClassPool
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.gaussian import GaussianWorld, as_files


def world(seed: int = 0, classes: int = 8, items: int = 40, separation: float = 0.6) -> tuple[Catalog, Features]:
    """A Gaussian world, in which nearest centroid is right most of the time."""
    generator = torch.Generator().manual_seed(seed)
    gaussian = GaussianWorld(dimensions=16, separation=separation)
    catalog, features, _ = as_files(gaussian.draw_items(gaussian.draw_classes((classes,), generator), items, generator))
    return catalog, features


def accuracy(tasks: TaskSet, features: Features) -> float:
    """Of nearest centroid, over all queries."""
    counts = evaluate(tasks, features, methods=["ncc"]).table
    return float(sum(counts.column("n_correct").to_pylist()) / sum(counts.column("n_query").to_pylist()))


def search(name: str, given: tuple[Catalog, Features], **options: Any) -> TaskSet:
    """40 tasks of 4 ways, 3 shots and 8 queries."""
    catalog, features = given
    design: dict[str, Any] = {"way": 4, "shot": 3, "query": 8, "tasks": 40}
    return sample(catalog, name, features=features, **{**design, **options})


def draw_candidates(
    seed: int = 0, tasks: int = 3, way: int = 3, pool: int = 7, query: int = 4, dimensions: int = 5, shot: int = 2
) -> Candidates:
    """Random features, each slot with a class of its own, whose last items are the queries."""
    generator = torch.Generator().manual_seed(seed)
    size = pool + query
    features = torch.randn(tasks * way * size, dimensions, generator=generator, dtype=torch.float64)
    first = torch.arange(tasks * way) * size
    rows = (first.unsqueeze(-1) + torch.arange(pool, size)).view(tasks, way * query)
    return Candidates(
        features=features,
        query_rows=rows,
        labels=torch.arange(way).repeat_interleave(query).repeat(tasks, 1),
        shots=torch.full((tasks * way,), shot),
        allowed=(torch.arange(size) < pool).repeat(tasks * way, 1),
        pools=[
            ClassPool(torch.tensor([slot]), features[first[slot] : first[slot] + size]) for slot in range(len(first))
        ],
    )


def loss_of(candidates: Candidates, weights: Tensor, scale: float, task: int) -> Tensor:
    """The queries' mean cross-entropy in one task, written from the definition: distances to weighted means."""
    way, queries = candidates.way, candidates.features[candidates.query_rows[task]]
    means = []
    for slot in range(task * way, task * way + way):
        pool = next(pool.features for pool in candidates.pools if slot in pool.slots.tolist())
        own = weights[slot, : len(pool)]
        means.append((own.unsqueeze(-1) * pool).sum(0) / own.sum())
    distances = torch.stack([(queries - mean).square().sum(-1) for mean in means], -1)
    return torch.nn.functional.cross_entropy(-scale * distances, candidates.labels[task])
