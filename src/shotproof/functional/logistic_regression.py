"""Multinomial logistic regression of a batch of tasks, solved exactly through inner products."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


ITERATIONS = 50
HALVINGS = 30


def unit_row_logits(support: Tensor, labels: Tensor, query: Tensor, way: int, strength: float) -> Tensor:
    """Fit support rows [B, n, d] and return the logits of queries [B, m, d], all scaled to length 1: [B, m, way].

    Args:
        support, labels, query, way: B tasks
        strength: C, the weight of the loss relative to the penalty on the weights
    """
    rows, query_rows = (torch.nn.functional.normalize(features.double(), dim=2) for features in (support, query))
    weights, bias = fit(rows @ rows.mT, torch.nn.functional.one_hot(labels, way).double(), strength)
    return query_rows @ rows.mT @ weights + bias


def fit(kernel: Tensor, target: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """Fit by Newton's method on kernel [B, n, n] and one-hot target [B, n, way]: weights [B, n, way], bias [B, 1, way].

    Each task has its own step length and is frozen once it has converged, so results do not depend on the batch.
    """
    tolerance = 1e-10 + 1e-14 * strength  # on the logits; rounding errors are about 1e-15 C
    weights = torch.zeros_like(target)
    bias = torch.zeros_like(target[:, :1])
    active = torch.ones(len(target), 1, 1, dtype=torch.bool, device=target.device)
    for _ in range(ITERATIONS):
        logits = kernel @ weights + bias
        next_weights, next_bias = newton_step(kernel, target, logits, strength)
        step_weights, step_bias = next_weights - weights, next_bias - bias
        length = _step_length(kernel, target, strength, (weights, bias), (step_weights, step_bias)) * active
        weights, bias = weights + length * step_weights, bias + length * step_bias
        change = (length * (kernel @ step_weights + step_bias)).abs().amax((1, 2), keepdim=True)
        active = active & (change > tolerance)
        if not active.any():
            return weights, bias
    for _ in range(int(active.sum())):  # one per task, so that the count does not depend on the batch
        warnings.warn(f"no convergence after {ITERATIONS} Newton steps", RuntimeWarning, stacklevel=2)
    return weights, bias


def newton_step(kernel: Tensor, target: Tensor, logits: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """Minimize the quadratic model at the logits [B, n, way]: the next weights and bias.

    With H = C (diag(p) - p p^T), the Hessian of the loss in the logits, the weights a and the bias b solve
    a + H (K a + b) = r and sum_i a_ic = 0, where r = C (y - p) + H logits. In S = (H^-1 + K)^-1 the classes are
    coupled only by a sum over n x n blocks E_c (Rasmussen and Williams, Gaussian Processes for Machine Learning,
    section 3.5), so that no system of size n way is ever formed.
    """
    p = logits.softmax(-1)
    right = strength * (target - p + p * (logits - (p * logits).sum(-1, keepdim=True)))
    root = (strength * p).mT.sqrt()  # [B, way, n]
    system = root.unsqueeze(-1) * kernel.unsqueeze(1) * root.unsqueeze(-2)
    system.diagonal(dim1=-2, dim2=-1).add_(1)
    half = torch.linalg.solve_triangular(torch.linalg.cholesky(system), torch.diag_embed(root), upper=False)
    blocks = half.mT @ half  # E_c: [B, way, n, n]
    total = torch.linalg.cholesky(blocks.sum(1))

    def apply_s(value: Tensor) -> Tensor:
        """Compute S times value [B, n, way]."""
        shared = (blocks @ value.mT.unsqueeze(-1)).squeeze(-1).mT
        common = torch.cholesky_solve(shared.sum(-1, keepdim=True), total)
        result: Tensor = shared - (blocks @ common.unsqueeze(1)).squeeze(-1).mT
        return result

    # The bias: the sums over rows of S couple the classes, [B, way, way]; only differences between classes matter.
    sums = blocks.sum(-1).mT  # [B, n, way]
    coupling = torch.diag_embed(sums.sum(1)) - sums.mT @ torch.cholesky_solve(sums, total)
    coupling = coupling + coupling.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    product = kernel @ right
    unbalanced = (right - apply_s(product)).sum(1)
    bias = torch.linalg.solve(coupling, unbalanced).unsqueeze(1)
    return right - apply_s(product + bias), bias


def objective(kernel: Tensor, target: Tensor, strength: float, weights: Tensor, bias: Tensor) -> Tensor:
    """Compute |W|^2 / 2 + C times the sum of cross-entropies for each task: [B, 1, 1]."""
    product = kernel @ weights
    logits = product + bias
    loss = logits.logsumexp(-1) - (logits * target).sum(-1)
    return ((weights * product).sum((1, 2)) / 2 + strength * loss.sum(1))[:, None, None]


def _step_length(
    kernel: Tensor, target: Tensor, strength: float, point: tuple[Tensor, Tensor], step: tuple[Tensor, Tensor]
) -> Tensor:
    """Return for each task the largest of 1, 1/2, 1/4, ... that does not raise its objective: [B, 1, 1]."""
    start = objective(kernel, target, strength, *point)
    limit = start + 1e-12 * start.abs()
    length = torch.ones_like(start)
    for _ in range(HALVINGS):
        value = objective(kernel, target, strength, point[0] + length * step[0], point[1] + length * step[1])
        too_long = value > limit
        if not too_long.any():
            break
        length = torch.where(too_long, length / 2, length)
    return length
