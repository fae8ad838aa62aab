"""Functions on inner products between the items of a task.

The inner products of a task are two small blocks, [n, n] and [m, n], instead of features of [n + m, d], and the same
pairs of items occur in many tasks. The blocks are in float64: in float32, |x|^2 - 2xy + |y|^2 loses small distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shotproof.core.lazy import torch
from shotproof.functional.feature_rows import NEGLIGIBLE, inverse_root

if TYPE_CHECKING:
    from torch import Tensor

LEAST = 1e-6  # added to a probability before the logarithm, as the published code of matching networks does


class GramBlocks(NamedTuple):
    """Inner products of a batch of tasks, in float64.

    support: support with support, [B, n, n]
    query: query with support, [B, m, n]
    query_norm2: |query|^2, [B, m]
    """

    support: Tensor
    query: Tensor
    query_norm2: Tensor


def gram_blocks(rows: Tensor, support: int) -> GramBlocks:
    """Compute the inner products of float64 rows [B, n + m, d], of which the first n = `support` are the support."""
    products = rows @ rows[:, :support].mT
    query_norm2 = torch.linalg.vector_norm(rows[:, support:], dim=-1).square()
    return GramBlocks(products[:, :support], products[:, support:], query_norm2)


def unit_rows(gram: GramBlocks) -> tuple[Tensor, Tensor]:
    """Compute the cosines of support with support [B, n, n] and query with support [B, m, n]; 0 for a zero row."""
    support_scale = inverse_root(gram.support.diagonal(dim1=-2, dim2=-1))
    query_scale = inverse_root(gram.query_norm2)
    return (
        gram.support * support_scale.unsqueeze(-1) * support_scale.unsqueeze(-2),
        gram.query * query_scale.unsqueeze(-1) * support_scale.unsqueeze(-2),
    )


def ridge_weights(kernel: Tensor, target: Tensor, penalty: float | Tensor) -> Tensor:
    """Solve ridge regression: dual weights A [B, n, way] = (kernel + penalty I)^-1 target.

    The scores of a query are its inner products with the support times A.

    Args:
        kernel: inner products of the support rows, float64 [B, n, n]
        target: regression targets, float64 [B, n, way]
        penalty: number or scalar tensor above 0
    """
    diagonal = kernel.diagonal(dim1=-2, dim2=-1)
    # Keeps the Cholesky factorization stable if rows repeat and the penalty is tiny.
    shift = penalty + NEGLIGIBLE * diagonal.amax(-1, keepdim=True)
    system = kernel + torch.diag_embed(shift.expand_as(diagonal))
    return torch.cholesky_solve(target, torch.linalg.cholesky(system))


def attention_scores(cosines: Tensor, labels: Tensor, way: int, scale: float) -> Tensor:
    """Compute the logarithm of each class's share of the attention over support rows, [B, m, way].

    Args:
        cosines: cosines of queries with support rows, [B, m, n]; negative ones count as 0
        labels: labels of the support rows, [B, n]
        way: number of classes
        scale: sharpness of the attention
    """
    attention = (scale * cosines.clamp(min=0)).softmax(-1)
    return (attention @ torch.nn.functional.one_hot(labels, way).to(cosines.dtype) + LEAST).log()
