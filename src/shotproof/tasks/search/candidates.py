"""The candidate supports of a batch of tasks, laid out by class: each class's features are touched once for all tasks.

A slot is one class of one task; S = B * W of them, task by task. The candidates of a slot are the positions in its
class, 0 to P - 1, where `allowed`; P is the size of the largest class of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from shotproof.tasks.search.closed_form import logits_of, prototype_gradient

Slopes = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class ClassCandidates:
    """One class of a batch: the slots in which it occurs, and the features [n, d] of its items."""

    slots: Tensor
    features: Tensor


@dataclass(frozen=True)
class Candidates:
    """B tasks of W classes and R queries each: everything that a search for supports may know of them."""

    features: Tensor  # [N, d] float64, of all items of the classes
    query_rows: Tensor  # [B, R]: the queries, as rows of the features
    labels: Tensor  # [B, R]: the slot, 0 to W - 1, of each query
    shots: Tensor  # [S]
    allowed: Tensor  # [S, P]: neither a query, nor of a query's source, nor beyond the class
    classes: list[ClassCandidates]

    @property
    def way(self) -> int:
        """The number of classes W of each task."""
        return len(self.shots) // len(self.labels)

    def prototypes(self, weights: Tensor) -> Tensor:
        """Sums of the candidates' features with weights [S, P], over the sums of the weights: [B, W, d]."""
        sums = self.features.new_empty(len(weights), self.features.shape[-1])
        for one in self.classes:
            sums[one.slots] = weights[one.slots, : len(one.features)] @ one.features
        return sums.div_(_not_zero(weights.sum(-1, keepdim=True))).view(len(self.labels), self.way, -1)

    def gradient(self, prototypes: Tensor, slopes: Slopes) -> Tensor:
        """The derivative of a loss by the prototypes [B, W, d]; `slopes` is the one by the logits at scale 1."""
        found = torch.empty_like(prototypes)
        for tasks in self._near_the_processor():
            queries, own = self.queries(tasks), prototypes[tasks]
            logits = logits_of(queries, own)
            found[tasks] = prototype_gradient(queries, own, slopes(logits, self.labels[tasks]))
        return found

    def logits(self, prototypes: Tensor) -> Tensor:
        """The logits [B, R, W] at scale 1 of all queries."""
        return torch.cat([logits_of(self.queries(tasks), prototypes[tasks]) for tasks in self._near_the_processor()])

    def queries(self, tasks: slice | int) -> Tensor:
        """The queries of some tasks [b, R, d], or of one [R, d]."""
        rows = self.query_rows[tasks]
        return self.features.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def _near_the_processor(self) -> Iterator[slice]:
        """All tasks, on a CPU as many at a time as have queries that fit into its cache."""
        size = 2**22 if self.features.device.type == "cpu" else 2**31
        step = max(1, size // (8 * self.query_rows.shape[1] * self.features.shape[-1]))
        return (slice(start, start + step) for start in range(0, len(self.labels), step))

    def products(self, vectors: Tensor) -> Tensor:
        """Inner products of each candidate with its slot's vector: [S, P] from [S, d]."""
        found = vectors.new_zeros(self.allowed.shape)
        for one in self.classes:
            found[one.slots, : len(one.features)] = (one.features @ vectors[one.slots].mT).mT
        return found

    def query_products(self) -> Tensor:
        """Inner products of each candidate with every query of its task: [S, P, R]."""
        found = self.features.new_zeros(*self.allowed.shape, self.labels.shape[1])
        for one in self.classes:
            for slot in one.slots.tolist():
                found[slot, : len(one.features)] = one.features @ self.queries(slot // self.way).mT
        return found

    def squared_norms(self) -> Tensor:
        """Of each candidate: [S, P]."""
        found = self.features.new_zeros(self.allowed.shape)
        for one in self.classes:
            found[one.slots, : len(one.features)] = one.features.square().sum(-1)
        return found

    def features_of(self, positions: Tensor) -> Tensor:
        """Features [S, d] of the candidates at positions [S]."""
        found = self.features.new_empty(len(positions), self.features.shape[-1])
        for one in self.classes:
            found[one.slots] = one.features[positions[one.slots]]
        return found

    def of_slot(self, slot: int) -> Candidates:
        """The same tasks with the candidates of one of their classes only: B slots."""
        classes = []
        for one in self.classes:
            own = one.slots[one.slots % self.way == slot] // self.way
            if len(own):
                classes.append(ClassCandidates(own, one.features))
        shots, allowed = self.shots[slot :: self.way], self.allowed[slot :: self.way]
        return replace(self, shots=shots, allowed=allowed, classes=classes)


def _not_zero(total: Tensor) -> Tensor:
    tiny = torch.finfo(total.dtype).tiny
    return torch.where(total.abs() < tiny, tiny, total)
