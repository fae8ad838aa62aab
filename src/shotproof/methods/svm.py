"""The multi-class support vector machine of MetaOptNet, solved exactly in its dual form."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.methods.gram import GramMethod, one_hot
from shotproof.methods.method import require_positive

RELAXATION = 1.6


@dataclass
class SupportVectorMachine(GramMethod):
    """Score: x S^T A with the A [n, way] that minimises tr(A^T (S S^T + I) A) / 2 - sum_i A[i, y_i].

    Each row of A sums to 0, and A[i, c] is at most C where c = y_i, at most 0 elsewhere: Crammer and Singer's machine.
    Lee, Maji, Ravichandran and Soatto, Meta-Learning with Differentiable Convex Optimization, 2019, whose solver stops
    after 15 steps; this one takes `iterations` steps of ADMM, by default enough for six digits on any common features.
    """

    C: float = 0.1
    iterations: int = 100

    about = "MetaOptNet's multi-class support vector machine (Crammer and Singer)"

    def __post_init__(self) -> None:
        require_positive("C", self.C, float)
        require_positive("iterations", self.iterations, int)

    def scores_from_gram(
        self, support_gram: Tensor, query_gram: Tensor, query_norm2: Tensor, labels: Tensor, way: int
    ) -> Tensor:
        """The dual weights applied to the queries' inner products."""
        return query_gram @ solve_dual(support_gram, one_hot(labels, way), self.C, self.iterations)


def solve_dual(kernel: Tensor, target: Tensor, strength: float, iterations: int) -> Tensor:
    """The dual weights A [B, n, way] for kernel [B, n, n] and one-hot target [B, n, way], always feasible.

    The same number of steps for every task, so that batch-mates never matter. The step size is the geometric mean of
    the eigenvalues of the system, with which a few dozen steps suffice whatever the features' scale.
    """
    eye = torch.eye(kernel.shape[-1], dtype=kernel.dtype, device=kernel.device)
    system = kernel + eye
    factor = torch.linalg.cholesky(system)
    step = (2 * factor.diagonal(dim1=-2, dim2=-1).log().mean(-1)).exp()[:, None, None]
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(system + step * eye))
    pull, bound = target - 1 / target.shape[-1], strength * target
    weights, dual = torch.zeros_like(target), torch.zeros_like(target)
    for _ in range(iterations):
        free = inverse @ (pull + step * (weights - dual))
        mixed = RELAXATION * free + (1 - RELAXATION) * weights
        # bound - A has rows on the simplex of size C.
        weights = bound - onto_simplex(bound - mixed - dual, strength)
        dual = dual + mixed - weights
    return weights


def onto_simplex(rows: Tensor, size: float) -> Tensor:
    """The nearest rows [..., k] without negative entries that sum to `size`."""
    ordered = rows.sort(-1, descending=True).values
    rank = torch.arange(1, rows.shape[-1] + 1, dtype=rows.dtype, device=rows.device)
    excess = (ordered.cumsum(-1) - size) / rank
    last = (ordered > excess).sum(-1, keepdim=True) - 1
    return (rows - excess.gather(-1, last)).clamp(min=0)
