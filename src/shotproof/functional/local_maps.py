"""Scores on local maps: an item as the descriptors at the locations of its map, which have no order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


MOST_HELD = 2**24  # numbers in the largest intermediate result: queries are taken in chunks that stay below


@dataclass(frozen=True)
class ClassDescriptors:
    """The descriptors of each class's support maps, padded with zeros to the largest class.

    rows: [B, way, p, d]
    present: [B, way, p], False where padded
    """

    rows: Tensor
    present: Tensor

    @classmethod
    def of(cls, descriptors: Tensor, labels: Tensor, way: int) -> ClassDescriptors:
        """From support descriptors [B, n, r, d] and labels [B, n]."""
        index, present = rows_of_classes(labels, way)
        task = torch.arange(len(labels), device=labels.device)[:, None, None]
        rows = descriptors[task, index] * present[..., None, None]
        return cls(rows.flatten(2, 3), present.repeat_interleave(descriptors.shape[2], -1))

    @property
    def count(self) -> Tensor:
        """How many descriptors each class has, in the type of `rows`: [B, way]."""
        return self.present.sum(-1).to(self.rows.dtype)


def descriptors(maps: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """Maps [B, r, d, h, w] to descriptors [B, r, h w, d]."""
    return maps.to(dtype).flatten(3).mT


def rows_of_classes(labels: Tensor, way: int) -> tuple[Tensor, Tensor]:
    """The support rows of each class [B, way, k] for k the largest class, and which of them there are."""
    counts = torch.nn.functional.one_hot(labels, way).sum(1)
    rank = torch.arange(int(counts.max()), device=labels.device)
    first = (counts.cumsum(-1) - counts).unsqueeze(-1)
    present = rank < counts.unsqueeze(-1)
    position = torch.where(present, first + rank, 0)
    order = labels.sort(dim=-1, stable=True).indices
    return order.gather(-1, position.flatten(1)).view_as(position), present


def chunks(query: Tensor, held: int) -> Iterator[Tensor]:
    """Query descriptors [B, m, r, d] in chunks of m, where a query of one task holds so many numbers."""
    yield from torch.split(query, max(1, MOST_HELD // (held * len(query))), dim=1)


def nearest_descriptor_scores(classes: ClassDescriptors, asked: Tensor, k: int) -> Tensor:
    """The sum over a query's locations of the k largest cosines to each class's descriptors, [B, m, way].

    Args:
        classes: descriptors of length 1
        asked: those of the queries, of length 1, [B, m, r, d]
        k: at most as many as the smallest class of a task has count
    """
    scores = []
    # One product of all descriptors for a chunk of queries. Gradients need the places of the largest, not the cosines.
    for part in chunks(asked, held=asked.shape[2] * classes.present[0].numel()):
        cosines = part.flatten(1, 2) @ classes.rows.flatten(1, 2).mT
        cosines = cosines.view(*part.shape[:3], *classes.present.shape[1:])
        scores.append(largest(cosines, classes.present[:, None, None], k).sum(2))
    return torch.cat(scores, 1)


def largest(values: Tensor, present: Tensor, k: int) -> Tensor:
    """The sum of the k largest of values [B, ..., way, p] that are present, k at most what the smallest class has."""
    values = values.masked_fill(~present, -torch.inf)
    fewest = present.sum(-1, keepdim=True).amin(-2).squeeze(-1)
    total = torch.zeros_like(values[..., 0])
    # A maximum at a time: for small k several times as fast as a partial sort.
    for taken in range(min(k, values.shape[-1])):
        best = values.max(-1, keepdim=True)
        total += torch.where(taken < fewest.unsqueeze(-1), best.values.squeeze(-1), 0.0)
        values.scatter_(-1, best.indices, -torch.inf)
    return total


def reconstruction_errors(
    classes: ClassDescriptors, asked: Tensor, strength: float | Tensor, rho: float | Tensor
) -> Tensor:
    """The mean squared error of a query's descriptors, rebuilt from each class's by ridge regression, [B, m, way].

    In the dual: with the class's descriptors S, k = S q and a = (S S^T + penalty I)^-1 k, the rebuilt q is rho S^T a.

    Args:
        classes: float64 descriptors of each class
        asked: those of the queries, float64 [B, m, r, d]
        strength: the penalty is this times the number of the class's descriptors over d, plus 1e-6
        rho: factor of what is rebuilt
    """
    d = asked.shape[-1]
    penalty = (classes.count / d * strength + 1e-6)[..., None, None]
    eye = torch.eye(classes.rows.shape[2], dtype=asked.dtype, device=asked.device)
    factor = torch.linalg.cholesky(classes.rows @ classes.rows.mT + penalty * eye)
    errors = []
    for part in chunks(asked, held=3 * asked.shape[2] * classes.present[0].numel()):
        products = classes.rows @ part.flatten(1, 2).mT.unsqueeze(1)  # [B, way, p, queries r]
        weights = torch.cholesky_solve(products, factor)
        agreement = (products * weights).sum(2)
        rebuilt = agreement - penalty.squeeze(-1) * weights.square().sum(2)
        change = rho**2 * rebuilt - 2 * rho * agreement  # |rebuilt|^2 - 2 q.rebuilt: [B, way, queries r]
        error = part.square().sum(-1).unsqueeze(1) + change.view(*change.shape[:2], *part.shape[1:3])
        errors.append(error.mean(-1).mT)
    return torch.cat(errors, 1)
