"""Methods that need only inner products between items, and the primitives that they share.

The inner products of a task fill two small blocks, [n, n] and [m, n], instead of features of [n + m, d], and the same
pairs of items meet in many tasks. The blocks are in float64: in float32, |x|^2 - 2xy + |y|^2 loses small distances.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from shotproof.methods.method import Method

# A squared length below this share of what it was computed from is rounding error, and taken as zero.
NEGLIGIBLE = 1e-12


class GramBlocks(NamedTuple):
    """The inner products of a batch of tasks, in float64.

    support: support with support, [B, n, n]
    query: query with support, [B, m, n]
    query_norm2: |query|^2, [B, m]
    """

    support: Tensor
    query: Tensor
    query_norm2: Tensor


class GramMethod(Method):
    """A method that sees its items through their inner products only."""

    @abstractmethod
    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The scores [B, m, way] from inner products, and the support's labels [B, n]."""

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Its blocks, and, as logistic regression holds them, `way` blocks of n x n."""
        return support * (4 * (support + query) + 6 * way * support)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores from features, through their inner products."""
        rows = torch.cat([support.double(), query.double()], 1)
        return self.scores_from_gram(gram_blocks(rows, support.shape[1]), labels, way)


def gram_blocks(rows: Tensor, support: int) -> GramBlocks:
    """The inner products of float64 rows [B, n + m, d], of which the first n = `support` are the support."""
    products = rows @ rows[:, :support].mT
    query_norm2 = torch.linalg.vector_norm(rows[:, support:], dim=-1).square()
    return GramBlocks(products[:, :support], products[:, support:], query_norm2)


def members(labels: Tensor, way: int) -> Tensor:
    """Labels [B, n] to float64 [B, way, n]: 1 where the row is of the class."""
    return (labels.unsqueeze(1) == torch.arange(way, device=labels.device).unsqueeze(-1)).double()


def mean_weights(labels: Tensor, way: int, rows: int | None = None) -> Tensor:
    """The weights [B, way, rows] of each class's mean support row; zero beyond the support, where there are more."""
    of_support = members(labels, way)
    means = of_support / of_support.sum(2, keepdim=True)
    return means if rows is None else torch.nn.functional.pad(means, (0, rows - labels.shape[1]))


def one_hot(labels: Tensor, way: int) -> Tensor:
    """Labels [B, n] to float64 [B, n, way]."""
    return members(labels, way).mT


def unit_rows(gram: GramBlocks) -> tuple[Tensor, Tensor]:
    """The cosines of support with support [B, n, n] and of query with support [B, m, n]; 0 for a zero row."""
    support_scale = inverse_root(gram.support.diagonal(dim1=-2, dim2=-1))
    query_scale = inverse_root(gram.query_norm2)
    return (
        gram.support * support_scale.unsqueeze(-1) * support_scale.unsqueeze(-2),
        gram.query * query_scale.unsqueeze(-1) * support_scale.unsqueeze(-2),
    )


def centroids(rows: Tensor, labels: Tensor, way: int) -> Tensor:
    """Each class's mean of the float64 rows [B, n, ...]: [B, way, ...]."""
    means = mean_weights(labels, way) @ rows.flatten(2)
    return means.view(*means.shape[:2], *rows.shape[2:])


def inverse_root(squares: Tensor, scale: Tensor | float = 0.0) -> Tensor:
    """1 / sqrt, and 0 where a square is negligible beside `scale`."""
    usable = squares > NEGLIGIBLE * torch.as_tensor(scale, dtype=squares.dtype, device=squares.device)
    return torch.where(usable, squares, torch.ones_like(squares)).rsqrt() * usable
