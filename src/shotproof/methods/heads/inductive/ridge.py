"""Ridge regression to one-hot labels, in closed form (the head of R2D2)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, one_hot
from shotproof.models.scoring.ridge import ridge_weights


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
        return gram.query @ ridge_weights(gram.support, one_hot(labels, way), self.penalty)
