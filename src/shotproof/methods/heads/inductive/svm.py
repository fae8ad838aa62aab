"""The multi-class support vector machine of MetaOptNet, solved exactly in its dual form."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, one_hot

RELAXATION = 1.6
CHECK = 25  # steps between two looks at the residuals
TOLERANCE = 1e-9  # of the products with the support, and of the gradient


@dataclass(frozen=True)
class SupportVectorMachine(GramMethod):
    """Score: x S^T A with the A [n, way] that minimizes tr(A^T (S S^T + I) A) / 2 - sum_i A[i, y_i].

    Each row of A sums to 0, and A[i, c] is at most C where c = y_i, at most 0 elsewhere: Crammer and Singer's machine.
    The paper's solver stops after 15 steps; this one takes up to `iterations` steps of ADMM, of which 50 to 100 suffice
    on common features.
    """

    about = "MetaOptNet's multi-class support vector machine (Crammer and Singer)"
    paper = "Lee et al., Meta-Learning with Differentiable Convex Optimization, 2019 (MetaOptNet)"
    example = "svm(C=1)"

    C: float = option(0.1, "weight of the errors beside the penalty on the weights", above=0)
    iterations: int = option(2000, "most steps of the solver", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The dual weights applied to the queries' inner products."""
        return gram.query @ solve_dual(gram.support, one_hot(labels, way), self.C, self.iterations)


def solve_dual(kernel: Tensor, target: Tensor, strength: float, iterations: int) -> Tensor:
    """The dual weights A [B, n, way] for kernel [B, n, n] and one-hot target [B, n, way], always feasible.

    Each task has its own step size, first the geometric mean of the system's eigenvalues, and is frozen once it has
    converged: the batch-mates never matter.
    """
    values, vectors = torch.linalg.eigh(kernel)
    values = values.clamp(min=0).unsqueeze(1) + 1  # of the kernel + I: [B, 1, n]
    step = values.log().mean(-1, keepdim=True).exp()
    pull, bound = target - 1 / target.shape[-1], strength * target
    weights, dual, solution = torch.zeros_like(target), torch.zeros_like(target), torch.zeros_like(target)
    active = torch.ones_like(step, dtype=torch.bool)
    for start in range(0, iterations, CHECK):
        inverse = vectors / (values + step) @ vectors.mT
        for _ in range(min(CHECK, iterations - start)):
            before = weights
            free = inverse @ (pull + step * (weights - dual))
            mixed = RELAXATION * free + (1 - RELAXATION) * weights
            # bound - A has rows on the simplex of size C.
            weights = bound - onto_simplex(bound - mixed - dual, strength)
            dual = dual + mixed - weights
        solution = torch.where(active, weights, solution)
        apart, moved = free - weights, weights - before
        error = torch.maximum((kernel @ apart).abs(), step * moved.abs()).amax((1, 2), keepdim=True)
        active = active & (error > TOLERANCE)
        if not active.any():
            return solution
        # Where one of the two residuals lags behind, the step size gives it more weight.
        lag = _size(apart) / torch.maximum(_size(free), _size(weights)) * _size(dual) / _size(moved)
        factor = lag.sqrt().clamp(0.2, 5)
        dual, step = dual / factor, step * factor
    for _ in range(int(active.sum())):  # one per task, so that the count does not depend on the batch
        warnings.warn(f"no convergence after {iterations} steps", RuntimeWarning, stacklevel=2)
    return solution


def _size(values: Tensor) -> Tensor:
    """The length of each task's values, never zero: [B, 1, 1]."""
    length: Tensor = torch.linalg.vector_norm(values, dim=(1, 2), keepdim=True)
    return length.clamp(min=1e-12)


def onto_simplex(rows: Tensor, size: float) -> Tensor:
    """The nearest rows [..., k] without negative entries that sum to `size`."""
    ordered = rows.sort(-1, descending=True).values
    rank = torch.arange(1, rows.shape[-1] + 1, dtype=rows.dtype, device=rows.device)
    excess = (ordered.cumsum(-1) - size) / rank
    last = (ordered > excess).sum(-1, keepdim=True) - 1
    return (rows - excess.gather(-1, last)).clamp(min=0)
