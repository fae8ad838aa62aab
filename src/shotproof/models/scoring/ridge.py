"""Ridge regression to given targets, in closed form."""

from __future__ import annotations

import torch
from torch import Tensor

# Where rows repeat and the penalty is tiny, so large a share of the largest entry keeps Cholesky going.
NEGLIGIBLE = 1e-12


def ridge_weights(kernel: Tensor, target: Tensor, penalty: float | Tensor) -> Tensor:
    """The dual weights A [B, n, way] = (kernel + penalty I)^-1 target; a query's scores are its products with A.

    Args:
        kernel: inner products of the support rows, float64 [B, n, n]
        target: float64 [B, n, way]
        penalty: above 0, a number or a scalar tensor
    """
    diagonal = kernel.diagonal(dim1=-2, dim2=-1)
    shift = penalty + NEGLIGIBLE * diagonal.amax(-1, keepdim=True)
    system = kernel + torch.diag_embed(shift.expand_as(diagonal))
    return torch.cholesky_solve(target, torch.linalg.cholesky(system))
