"""Formulas on inner products between the items of a task.

The inner products of a task fill two small blocks, [n, n] and [m, n], instead of features of [n + m, d], and the same
pairs of items meet in many tasks. The blocks are in float64: in float32, |x|^2 - 2xy + |y|^2 loses small distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shotproof.core.lazy import torch
from shotproof.functional.feature_rows import NEGLIGIBLE, inverse_root

if TYPE_CHECKING:
    from torch import Tensor

LEAST = 1e-6  # added to a probability before the logarithm, as the published code of matching networks does


class GramBlocks(NamedTuple):
    """The inner products of a batch of tasks, in float64.

    support: support with support, [B, n, n]
    query: query with support, [B, m, n]
    query_norm2: |query|^2, [B, m]
    """

    support: Tensor
    query: Tensor
    query_norm2: Tensor


def gram_blocks(rows: Tensor, support: int) -> GramBlocks:
    """The inner products of float64 rows [B, n + m, d], of which the first n = `support` are the support."""
    products = rows @ rows[:, :support].mT
    query_norm2 = torch.linalg.vector_norm(rows[:, support:], dim=-1).square()
    return GramBlocks(products[:, :support], products[:, support:], query_norm2)


def unit_rows(gram: GramBlocks) -> tuple[Tensor, Tensor]:
    """The cosines of support with support [B, n, n] and of query with support [B, m, n]; 0 for a zero row."""
    support_scale = inverse_root(gram.support.diagonal(dim1=-2, dim2=-1))
    query_scale = inverse_root(gram.query_norm2)
    return (
        gram.support * support_scale.unsqueeze(-1) * support_scale.unsqueeze(-2),
        gram.query * query_scale.unsqueeze(-1) * support_scale.unsqueeze(-2),
    )


def ridge_weights(kernel: Tensor, target: Tensor, penalty: float | Tensor) -> Tensor:
    """The dual weights A [B, n, way] = (kernel + penalty I)^-1 target; a query's scores are its products with A.

    Args:
        kernel: inner products of the support rows, float64 [B, n, n]
        target: float64 [B, n, way]
        penalty: above 0, a number or a scalar tensor
    """
    diagonal = kernel.diagonal(dim1=-2, dim2=-1)
    # Where rows repeat and the penalty is tiny, so large a share of the largest entry keeps Cholesky going.
    shift = penalty + NEGLIGIBLE * diagonal.amax(-1, keepdim=True)
    system = kernel + torch.diag_embed(shift.expand_as(diagonal))
    return torch.cholesky_solve(target, torch.linalg.cholesky(system))


def attention_scores(cosines: Tensor, labels: Tensor, way: int, scale: float) -> Tensor:
    """The logarithm of the attention that each class's support rows get, [B, m, way].

    Args:
        cosines: of queries with support rows, [B, m, n]; those below 0 count as 0
        labels: of the support rows, [B, n]
        way: the number of classes
        scale: how sharp the attention is
    """
    attention = (scale * cosines.clamp(min=0)).softmax(-1)
    return (attention @ torch.nn.functional.one_hot(labels, way).to(cosines.dtype) + LEAST).log()
