"""Scores on local maps: an item is the unordered set of descriptors at the locations of its map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


CHUNK_SIZE = 2**24  # largest number of values in an intermediate result; queries are split into chunks to stay below it


@dataclass(frozen=True)
class ClassDescriptors:
    """Descriptors of each class's support maps, padded with zeros to the largest class.

    rows: [B, way, p, d]
    present: [B, way, p], False where padded
    """

    rows: Tensor
    present: Tensor

    @classmethod
    def of(cls, descriptors: Tensor, labels: Tensor, way: int) -> ClassDescriptors:
        """Group support descriptors [B, n, r, d] by labels [B, n]."""
        index, present = rows_by_class(labels, way)
        task = torch.arange(len(labels), device=labels.device)[:, None, None]
        rows = descriptors[task, index] * present[..., None, None]
        return cls(rows.flatten(2, 3), present.repeat_interleave(descriptors.shape[2], -1))

    @property
    def count(self) -> Tensor:
        """Return the number of descriptors of each class, in the dtype of `rows`: [B, way]."""
        return self.present.sum(-1).to(self.rows.dtype)


def descriptors(maps: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """Convert maps [B, r, d, h, w] to descriptors [B, r, h w, d]."""
    return maps.to(dtype).flatten(3).mT


def rows_by_class(labels: Tensor, way: int) -> tuple[Tensor, Tensor]:
    """Return indices of the support rows of each class, [B, way, k] with k the largest class size, and which exist."""
    counts = torch.nn.functional.one_hot(labels, way).sum(1)
    rank = torch.arange(int(counts.max()), device=labels.device)
    first = (counts.cumsum(-1) - counts).unsqueeze(-1)
    present = rank < counts.unsqueeze(-1)
    position = torch.where(present, first + rank, 0)
    order = labels.sort(dim=-1, stable=True).indices
    return order.gather(-1, position.flatten(1)).view_as(position), present


def split_queries(query: Tensor, numbers_per_query: int) -> Iterator[Tensor]:
    """Split query descriptors [B, m, r, d] along m, given the number of intermediate values per query of a task."""
    yield from torch.split(query, max(1, CHUNK_SIZE // (numbers_per_query * len(query))), dim=1)


def nearest_descriptor_scores(classes: ClassDescriptors, query_descriptors: Tensor, k: int) -> Tensor:
    """Sum over a query's locations the k largest cosines to each class's descriptors, [B, m, way].

    Args:
        classes: class descriptors of length 1
        query_descriptors: descriptors of length 1, [B, m, r, d]
        k: number of cosines, limited to the descriptors of the smallest class of a task
    """
    scores = []
    # One product of all descriptors per chunk of queries. Gradients need the indices of the largest, not the cosines.
    for chunk in split_queries(
        query_descriptors, numbers_per_query=query_descriptors.shape[2] * classes.present[0].numel()
    ):
        cosines = chunk.flatten(1, 2) @ classes.rows.flatten(1, 2).mT
        cosines = cosines.view(*chunk.shape[:3], *classes.present.shape[1:])
        scores.append(sum_largest(cosines, classes.present[:, None, None], k).sum(2))
    return torch.cat(scores, 1)


def sum_largest(values: Tensor, present: Tensor, k: int) -> Tensor:
    """Sum the k largest present values of [B, ..., way, p], with k limited to the size of the smallest class."""
    values = values.masked_fill(~present, -torch.inf)
    fewest = present.sum(-1, keepdim=True).amin(-2).squeeze(-1)
    total = torch.zeros_like(values[..., 0])
    # One maximum at a time is several times as fast as a partial sort for small k.
    for rank in range(min(k, values.shape[-1])):
        best = values.max(-1, keepdim=True)
        total += torch.where(rank < fewest.unsqueeze(-1), best.values.squeeze(-1), 0.0)
        values.scatter_(-1, best.indices, -torch.inf)
    return total


def reconstruction_errors(
    classes: ClassDescriptors, query_descriptors: Tensor, strength: float | Tensor, scale: float | Tensor
) -> Tensor:
    """Compute the mean squared error of rebuilding query descriptors by ridge regression on each class, [B, m, way].

    In the dual: with class descriptors S, k = S q and a = (S S^T + penalty I)^-1 k, the reconstruction is scale S^T a.

    Args:
        classes: float64 descriptors of each class
        query_descriptors: float64 descriptors of the queries, [B, m, r, d]
        strength: factor of the penalty: strength times the number of the class's descriptors over d, plus 1e-6
        scale: factor of the reconstruction
    """
    d = query_descriptors.shape[-1]
    penalty = (classes.count / d * strength + 1e-6)[..., None, None]
    eye = torch.eye(classes.rows.shape[2], dtype=query_descriptors.dtype, device=query_descriptors.device)
    factor = torch.linalg.cholesky(classes.rows @ classes.rows.mT + penalty * eye)
    errors = []
    for chunk in split_queries(
        query_descriptors, numbers_per_query=3 * query_descriptors.shape[2] * classes.present[0].numel()
    ):
        products = classes.rows @ chunk.flatten(1, 2).mT.unsqueeze(1)  # [B, way, p, queries r]
        weights = torch.cholesky_solve(products, factor)
        agreement = (products * weights).sum(2)
        rebuilt = agreement - penalty.squeeze(-1) * weights.square().sum(2)
        change = scale**2 * rebuilt - 2 * scale * agreement  # |rebuilt|^2 - 2 q.rebuilt: [B, way, queries r]
        error = chunk.square().sum(-1).unsqueeze(1) + change.view(*change.shape[:2], *chunk.shape[1:3])
        errors.append(error.mean(-1).mT)
    return torch.cat(errors, 1)
