"""Ridge regression to one-hot labels, in closed form (the head of R2D2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import NEGLIGIBLE, GramBlocks, GramMethod, one_hot


@dataclass(frozen=True)
class RidgeRegression(GramMethod):
    """Score: x W with W = S^T (S S^T + penalty I)^-1 Y, without intercept.

    A penalty of 50 suits raw features; on rows of length 1 it is very strong, and 1 is sensible.
    """

    about = "ridge regression to one-hot labels, closed form"
    paper = "Bertinetto et al., Meta-learning with Differentiable Closed-form Solvers, 2019 (R2D2)"
    example = "ridge(penalty=1)"

    penalty: float = option(50.0, "weight of the penalty on the weights", above=0)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The n x n system of the dual, by Cholesky."""
        diagonal = gram.support.diagonal(dim1=-2, dim2=-1)
        # Where rows repeat and the penalty is tiny, a negligible share of the largest entry keeps Cholesky going.
        shift = self.penalty + NEGLIGIBLE * diagonal.amax(-1, keepdim=True)
        system = gram.support + torch.diag_embed(shift.expand_as(diagonal))
        return gram.query @ torch.cholesky_solve(one_hot(labels, way), torch.linalg.cholesky(system))
