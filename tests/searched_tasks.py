"""Tasks with features, for the tests of searches for supports."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from shotproof.catalog.catalog import Catalog
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample, samplers
from shotproof.tasks.search.candidates import Candidates, ClassCandidates
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.gaussian import DrawnItems, GaussianWorld, as_files


def world(seed: int = 0, classes: int = 8, items: int = 40, separation: float = 0.6) -> tuple[Catalog, Features]:
    """A Gaussian world, in which nearest centroid is right most of the time."""
    generator = torch.Generator().manual_seed(seed)
    gaussian = GaussianWorld(dimensions=16, separation=separation)
    catalog, features, _ = as_files(gaussian.draw_items(gaussian.draw_classes((classes,), generator), items, generator))
    return catalog, features


def world_in_contexts(seed: int = 0) -> tuple[Catalog, Features]:
    """12 classes of 300 items in 6 contexts that move the items further than their class does; all of length 1."""
    generator = torch.Generator().manual_seed(seed)
    items = GaussianWorld(dimensions=256, separation=0.45).draw_classes((12,), generator).means.unsqueeze(1)
    contexts = 0.6 * torch.randn(6, 256, generator=generator)
    held = torch.randint(6, (12, 300), generator=generator)
    values = items + contexts[held] + torch.randn(12, 300, 256, generator=generator)
    drawn = DrawnItems(values / values.norm(dim=-1, keepdim=True), torch.zeros(12, 300, 0, dtype=torch.bool))
    catalog, features, _ = as_files(drawn)
    return catalog, features


def accuracy(tasks: TaskSet, features: Features) -> float:
    """Of nearest centroid, over all queries, task by task."""
    row_of = {item: row for row, item in enumerate(features.table.column("item").to_pylist())}
    vectors = torch.tensor(features.array, dtype=torch.float64)
    rows, right = tasks.table.to_pylist(), list[bool]()
    for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
        task = rows[start:stop]
        centroids = torch.stack([vectors[[row_of[item] for item in row["support"]]].mean(0) for row in task])
        for slot, row in enumerate(task):
            distances = torch.cdist(vectors[[row_of[item] for item in row["query"]]], centroids)
            right += (distances.argmin(1) == slot).tolist()
    return sum(right) / len(right)


def search(
    name: str,
    given: tuple[Catalog, Features],
    *,
    like: TaskSet | None = None,
    shot: int = 3,
    query: int = 8,
    tasks: int | None = 40,
    **options: Any,
) -> TaskSet:
    """Tasks of 4 ways, by a sampler with these options."""
    catalog, features = given
    sampler = samplers.make(name, **options)
    return sample(catalog, sampler, features=features, like=like, way=4, shot=shot, query=query, tasks=tasks)


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
        first_rows=first,
        classes=[
            ClassCandidates(torch.tensor([slot]), features[first[slot] : first[slot] + size])
            for slot in range(len(first))
        ],
    )


def loss_of(candidates: Candidates, weights: Tensor, scale: float, task: int) -> Tensor:
    """The queries' summed cross-entropy in one task, written from the definition: distances to weighted means."""
    way, queries = candidates.way, candidates.features[candidates.query_rows[task]]
    means = []
    for slot in range(task * way, task * way + way):
        pool = next(label.features for label in candidates.classes if slot in label.slots.tolist())
        own = weights[slot, : len(pool)]
        means.append((own.unsqueeze(-1) * pool).sum(0) / own.sum())
    distances = torch.stack([(queries - mean).square().sum(-1) for mean in means], -1)
    return torch.nn.functional.cross_entropy(-scale * distances, candidates.labels[task], reduction="sum")
