"""Candidate support items of a batch of tasks, stored by class, so that each class's features are read only once.

A slot is one class of one task; there are S = B * W, task by task. The candidates of a slot are the positions in its
class, 0 to P - 1, that are `allowed`; P is the size of the largest class of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from shotproof.tasks.search.closed_form import prototype_gradient, prototype_logits

LogitGradient = Callable[[Tensor, Tensor], Tensor]
"""Derivative of a loss with respect to logits [B, R, W], given these and labels [B, R]."""


@dataclass(frozen=True)
class ClassCandidates:
    """Class of a batch: the slots in which it occurs, and the features [n, d] of its items."""

    slots: Tensor
    features: Tensor


@dataclass(frozen=True)
class Candidates:
    """Batch of B tasks of W classes and R queries each, with all that a search for supports may use."""

    features: Tensor  # [N, d] float64, of all items of the classes
    query_rows: Tensor  # [B, R]: rows of the features
    labels: Tensor  # [B, R]: the slot, 0 to W - 1, of each query
    shots: Tensor  # [S]
    allowed: Tensor  # [S, P]: in the class, not a query, and of no query's source
    first_rows: Tensor  # [S]: row of the features of the first item of the slot's class
    classes: list[ClassCandidates]

    @property
    def way(self) -> int:
        """Return the number of classes W of each task."""
        return len(self.shots) // len(self.labels)

    def prototypes(self, weights: Tensor) -> Tensor:
        """Compute the means of the candidates' features with weights [S, P]: [B, W, d]."""
        sums = self.features.new_empty(len(weights), self.features.shape[-1])
        for entry in self.classes:
            sums[entry.slots] = weights.index_select(0, entry.slots)[:, : len(entry.features)] @ entry.features
        return sums.div_(_nonzero(weights.sum(-1, keepdim=True))).view(len(self.labels), self.way, -1)

    def gradient(self, prototypes: Tensor, logit_gradient: LogitGradient) -> Tensor:
        """Compute the gradient of a loss in the prototypes [B, W, d], from that in the logits at scale 1."""
        gradient = torch.empty_like(prototypes)
        for tasks, (queries,) in self._batches_in_cache(self.query_rows):
            gradient[tasks] = self._gradient(tasks, queries, prototypes[tasks], logit_gradient)
        return gradient

    def query_means(self) -> Tensor:
        """Compute the mean of the queries of each class: [B, W, d]."""
        way = self.way
        slots = self.labels + way * torch.arange(len(self.labels), device=self.labels.device).unsqueeze(-1)
        weights = self.features.new_zeros(self.allowed.shape)
        weights[slots, self.query_rows - self.first_rows[slots]] = 1
        return self.prototypes(weights)

    def contributions(self, remaining: Tensor, logit_gradient: LogitGradient) -> Tensor:
        """Compute the derivative of a loss in the weight of each remaining candidate [S, P], at equal weights.

        Up to a constant per slot. If few candidates remain, only their features are gathered, task by task.
        """
        counts = remaining.sum(-1)
        most = int(counts.max())
        if 2 * most > remaining.shape[-1]:
            return self.products(self.gradient(self.prototypes(remaining.double()), logit_gradient).flatten(0, 1))
        positions = remaining.byte().topk(most).indices
        weights = remaining.gather(-1, positions).double() / counts.unsqueeze(-1)
        rows = (self.first_rows.unsqueeze(-1) + positions).where(weights > 0, self.first_rows.unsqueeze(-1))
        shape = (len(self.labels), self.way, most)
        derivatives = weights.new_empty(shape)
        weights = weights.view(shape).unsqueeze(-2)
        for tasks, (queries, features) in self._batches_in_cache(self.query_rows, rows.view(len(self.labels), -1)):
            features = features.view(-1, *shape[1:], features.shape[-1])
            prototypes = (weights[tasks] @ features).squeeze(-2)
            gradient = self._gradient(tasks, queries, prototypes, logit_gradient)
            derivatives[tasks] = (gradient.unsqueeze(-2) @ features.mT).squeeze(-2)
        return derivatives.new_zeros(remaining.shape).scatter_(-1, positions, derivatives.flatten(0, 1))

    def logits(self, prototypes: Tensor) -> Tensor:
        """Compute the logits [B, R, W] of all queries, at scale 1."""
        batches = self._batches_in_cache(self.query_rows)
        return torch.cat([prototype_logits(queries, prototypes[tasks]) for tasks, (queries,) in batches])

    def queries(self, task: int) -> Tensor:
        """Return the features of the queries of one task, [R, d]."""
        return self.features.index_select(0, self.query_rows[task])

    def _gradient(self, tasks: slice, queries: Tensor, prototypes: Tensor, logit_gradient: LogitGradient) -> Tensor:
        gradient = logit_gradient(prototype_logits(queries, prototypes), self.labels[tasks])
        return prototype_gradient(queries, prototypes, gradient)

    def _batches_in_cache(self, *rows: Tensor) -> Iterator[tuple[slice, list[Tensor]]]:
        """Yield slices of tasks with the features [b, n, d] of their rows [B, n]; on a CPU, each fits into its cache.

        The features are valid until the next slice: their memory is reused, which is faster than allocating it.
        """
        width, size = self.features.shape[-1], 2**22 if self.features.device.type == "cpu" else 2**31
        step = min(len(self.labels), max(1, size // (8 * width * sum(task_rows.shape[1] for task_rows in rows))))
        buffers = [self.features.new_empty(step * task_rows.shape[1], width) for task_rows in rows]
        for start in range(0, len(self.labels), step):
            tasks, features = slice(start, start + step), []
            for task_rows, buffer in zip(rows, buffers, strict=True):
                indices = task_rows[tasks].flatten()
                torch.index_select(self.features, 0, indices, out=buffer[: len(indices)])
                features.append(buffer[: len(indices)].view(-1, task_rows.shape[1], width))
            yield tasks, features

    def products(self, vectors: Tensor) -> Tensor:
        """Compute inner products of each candidate with its slot's vector: [S, P] from [S, d]."""
        products = vectors.new_zeros(self.allowed.shape)
        for entry in self.classes:
            products[entry.slots, : len(entry.features)] = vectors.index_select(0, entry.slots) @ entry.features.mT
        return products

    def query_products(self) -> Tensor:
        """Compute inner products of each candidate with every query of its task: [S, P, R]."""
        products = self.features.new_zeros(*self.allowed.shape, self.labels.shape[1])
        for entry in self.classes:
            for slot in entry.slots.tolist():
                products[slot, : len(entry.features)] = entry.features @ self.queries(slot // self.way).mT
        return products

    def squared_norms(self) -> Tensor:
        """Compute the squared norm of each candidate: [S, P]."""
        norms = self.features.new_zeros(self.allowed.shape)
        for entry in self.classes:
            norms[entry.slots, : len(entry.features)] = entry.features.square().sum(-1)
        return norms

    def features_at(self, positions: Tensor) -> Tensor:
        """Return the features [S, d] of the candidates at positions [S]."""
        features = self.features.new_empty(len(positions), self.features.shape[-1])
        for entry in self.classes:
            features[entry.slots] = entry.features[positions[entry.slots]]
        return features

    def only_slot(self, slot: int) -> Candidates:
        """Return the same tasks with the candidates of only one of their classes: B slots."""
        classes = []
        for entry in self.classes:
            slots = entry.slots[entry.slots % self.way == slot] // self.way
            if len(slots):
                classes.append(ClassCandidates(slots, entry.features))
        shots, allowed, first_rows = (
            values[slot :: self.way] for values in (self.shots, self.allowed, self.first_rows)
        )
        return replace(self, shots=shots, allowed=allowed, first_rows=first_rows, classes=classes)


def _nonzero(values: Tensor) -> Tensor:
    tiny = torch.finfo(values.dtype).tiny
    return torch.where(values.abs() < tiny, tiny, values)
