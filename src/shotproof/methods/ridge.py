"""Ridge regression to one-hot labels, in closed form (the head of R2D2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.methods.gram import NEGLIGIBLE, GramMethod, one_hot
from shotproof.methods.method import require_positive


@dataclass
class RidgeRegression(GramMethod):
    """Score: x W with W = S^T (S S^T + penalty I)^-1 Y, without intercept.

    Bertinetto, Henriques, Torr and Vedaldi, Meta-learning with Differentiable Closed-form Solvers, 2019 (R2D2).
    A penalty of 50 suits raw features; on rows of length 1 it is very strong, and 1 is sensible.
    """

    penalty: float = 50.0

    about = "ridge regression to one-hot labels, closed form"

    def __post_init__(self) -> None:
        require_positive("penalty", self.penalty, float)

    def scores_from_gram(
        self, support_gram: Tensor, query_gram: Tensor, query_norm2: Tensor, labels: Tensor, way: int
    ) -> Tensor:
        """The n x n system of the dual, by Cholesky."""
        diagonal = support_gram.diagonal(dim1=-2, dim2=-1)
        # Where rows repeat and the penalty is tiny, a negligible share of the largest entry keeps Cholesky going.
        shift = self.penalty + NEGLIGIBLE * diagonal.amax(-1, keepdim=True)
        system = support_gram + torch.diag_embed(shift.expand_as(diagonal))
        return query_gram @ torch.cholesky_solve(one_hot(labels, way), torch.linalg.cholesky(system))
