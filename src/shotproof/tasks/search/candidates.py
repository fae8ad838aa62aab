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
    first_rows: Tensor  # [S]: the first item of the slot's class, as a row of the features
    classes: list[ClassCandidates]

    @property
    def way(self) -> int:
        """The number of classes W of each task."""
        return len(self.shots) // len(self.labels)

    def prototypes(self, weights: Tensor) -> Tensor:
        """Sums of the candidates' features with weights [S, P], over the sums of the weights: [B, W, d]."""
        sums = self.features.new_empty(len(weights), self.features.shape[-1])
        for one in self.classes:
            sums[one.slots] = weights.index_select(0, one.slots)[:, : len(one.features)] @ one.features
        return sums.div_(_not_zero(weights.sum(-1, keepdim=True))).view(len(self.labels), self.way, -1)

    def gradient(self, prototypes: Tensor, slopes: Slopes) -> Tensor:
        """The derivative of a loss by the prototypes [B, W, d]; `slopes` is the one by the logits at scale 1."""
        found = torch.empty_like(prototypes)
        for tasks, (queries,) in self._near_the_processor(self.query_rows):
            found[tasks] = self._gradient(tasks, queries, prototypes[tasks], slopes)
        return found

    def query_means(self) -> Tensor:
        """The mean of the queries of each class: [B, W, d]."""
        way = self.way
        slots = self.labels + way * torch.arange(len(self.labels), device=self.labels.device).unsqueeze(-1)
        weights = self.features.new_zeros(self.allowed.shape)
        weights[slots, self.query_rows - self.first_rows[slots]] = 1
        return self.prototypes(weights)

    def contributions(self, left: Tensor, slopes: Slopes) -> Tensor:
        """How fast a loss rises with the weight of each candidate left [S, P], all of them weighing the same.

        Up to a constant per slot. Where few are left, they are gathered task by task: the others are not touched.
        """
        counts = left.sum(-1)
        most = int(counts.max())
        if 2 * most > left.shape[-1]:
            return self.products(self.gradient(self.prototypes(left.double()), slopes).flatten(0, 1))
        places = left.byte().topk(most).indices
        weights = left.gather(-1, places).double() / counts.unsqueeze(-1)
        rows = (self.first_rows.unsqueeze(-1) + places).where(weights > 0, self.first_rows.unsqueeze(-1))
        shape = (len(self.labels), self.way, most)
        along = weights.new_empty(shape)
        weights = weights.view(shape).unsqueeze(-2)
        for tasks, (queries, few) in self._near_the_processor(self.query_rows, rows.view(len(self.labels), -1)):
            few = few.view(-1, *shape[1:], few.shape[-1])
            prototypes = (weights[tasks] @ few).squeeze(-2)
            gradient = self._gradient(tasks, queries, prototypes, slopes)
            along[tasks] = (gradient.unsqueeze(-2) @ few.mT).squeeze(-2)
        return along.new_zeros(left.shape).scatter_(-1, places, along.flatten(0, 1))

    def logits(self, prototypes: Tensor) -> Tensor:
        """The logits [B, R, W] at scale 1 of all queries."""
        near = self._near_the_processor(self.query_rows)
        return torch.cat([logits_of(queries, prototypes[tasks]) for tasks, (queries,) in near])

    def queries(self, task: int) -> Tensor:
        """The queries of one task [R, d]."""
        return self.features.index_select(0, self.query_rows[task])

    def _gradient(self, tasks: slice, queries: Tensor, prototypes: Tensor, slopes: Slopes) -> Tensor:
        own = slopes(logits_of(queries, prototypes), self.labels[tasks])
        return prototype_gradient(queries, prototypes, own)

    def _near_the_processor(self, *rows: Tensor) -> Iterator[tuple[slice, list[Tensor]]]:
        """All tasks and the features [b, n, d] of their rows [B, n], on a CPU as many at a time as fit into its cache.

        Valid until the next ones are asked for: memory is used again, which is quicker than new memory.
        """
        width, size = self.features.shape[-1], 2**22 if self.features.device.type == "cpu" else 2**31
        step = min(len(self.labels), max(1, size // (8 * width * sum(one.shape[1] for one in rows))))
        memory = [self.features.new_empty(step * one.shape[1], width) for one in rows]
        for start in range(0, len(self.labels), step):
            tasks, found = slice(start, start + step), []
            for one, into in zip(rows, memory, strict=True):
                asked = one[tasks].flatten()
                torch.index_select(self.features, 0, asked, out=into[: len(asked)])
                found.append(into[: len(asked)].view(-1, one.shape[1], width))
            yield tasks, found

    def products(self, vectors: Tensor) -> Tensor:
        """Inner products of each candidate with its slot's vector: [S, P] from [S, d]."""
        found = vectors.new_zeros(self.allowed.shape)
        for one in self.classes:
            found[one.slots, : len(one.features)] = vectors.index_select(0, one.slots) @ one.features.mT
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
        shots, allowed, first_rows = (all_[slot :: self.way] for all_ in (self.shots, self.allowed, self.first_rows))
        return replace(self, shots=shots, allowed=allowed, first_rows=first_rows, classes=classes)


def _not_zero(total: Tensor) -> Tensor:
    tiny = torch.finfo(total.dtype).tiny
    return torch.where(total.abs() < tiny, tiny, total)
