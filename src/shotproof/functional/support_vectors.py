"""Multi-class support vector machine of Crammer and Singer in its dual form: solution and gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


RELAXATION = 1.6
CHECK = 25  # steps between checks of the residuals
TOLERANCE = 1e-9  # on the products with the support, and on the gradient


def solve_dual(kernel: Tensor, target: Tensor, strength: float, iterations: int) -> tuple[Tensor, int]:
    """Solve the dual by ADMM: feasible weights A [B, n, way], and the number of tasks that have not converged.

    The weights minimize tr(A^T (K + I) A) / 2 - sum_i A[i, y_i] for kernel K, float64 [B, n, n], and one-hot target Y,
    [B, n, way], subject to: each row sums to 0, and A[i, c] is at most `strength` for c = y_i, at most 0 otherwise.

    Each task has its own step size, initially the geometric mean of the system's eigenvalues, and is frozen once it has
    converged, so results do not depend on the batch.
    """
    values, vectors = torch.linalg.eigh(kernel)
    values = values.clamp(min=0).unsqueeze(1) + 1  # eigenvalues of the kernel + I: [B, 1, n]
    step = values.log().mean(-1, keepdim=True).exp()
    pull, bound = target - 1 / target.shape[-1], strength * target
    weights, dual, solution = torch.zeros_like(target), torch.zeros_like(target), torch.zeros_like(target)
    active = torch.ones_like(step, dtype=torch.bool)
    for start in range(0, iterations, CHECK):
        inverse = vectors / (values + step) @ vectors.mT
        for _ in range(min(CHECK, iterations - start)):
            previous = weights
            free = inverse @ (pull + step * (weights - dual))
            mixed = RELAXATION * free + (1 - RELAXATION) * weights
            # bound - A has rows on the simplex of size C.
            weights = bound - project_to_simplex(bound - mixed - dual, strength)
            dual = dual + mixed - weights
        solution = torch.where(active, weights, solution)
        primal_residual, change = free - weights, weights - previous
        error = torch.maximum((kernel @ primal_residual).abs(), step * change.abs()).amax((1, 2), keepdim=True)
        active = active & (error > TOLERANCE)
        if not active.any():
            break
        # The step size gives more weight to the residual that lags behind.
        lag = _norm(primal_residual) / torch.maximum(_norm(free), _norm(weights)) * _norm(dual) / _norm(change)
        factor = lag.sqrt().clamp(0.2, 5)
        dual, step = dual / factor, step * factor
    return solution, int(active.sum())


def attach_gradient(weights: Tensor, kernel: Tensor, target: Tensor, strength: float) -> Tensor:
    """Attach to the dual weights their gradient with respect to the kernel, without changing their values.

    For a small change of the kernel, active bounds stay active, and the other weights move while row sums stay: with P
    the projection onto these directions, dA = -M^-1 P dK A, where M = P (K + I) P + (I - P).
    """
    count, way = weights.shape[1:]
    fixed, solution = kernel.detach(), weights.detach()
    free = (strength * target > solution).to(kernel.dtype)
    share = free / free.sum(-1, keepdim=True).clamp(min=1)
    inner = torch.diag_embed(free) - free.unsqueeze(-1) * share.unsqueeze(-2)
    eye = torch.eye(count, dtype=kernel.dtype, device=kernel.device)
    # Entry (i, a), (j, b) is sum_c P_i[a, c] K[i, j] P_j[c, b].
    system = torch.einsum("tij,tiac,tjcb->tiajb", fixed + eye, inner, inner)
    outside = torch.eye(way, dtype=kernel.dtype, device=kernel.device) - inner
    system = system + torch.einsum("ij,tiab->tiajb", eye, outside)
    change = (kernel - fixed) @ solution
    rhs = (inner @ change.unsqueeze(-1)).flatten(1)  # [B, n way], zero in value
    correction: Tensor = torch.linalg.solve(system.reshape(len(weights), count * way, count * way), rhs.unsqueeze(-1))
    return solution - correction.reshape_as(solution)


def _norm(values: Tensor) -> Tensor:
    """Compute the norm of each task's values, never zero: [B, 1, 1]."""
    length: Tensor = torch.linalg.vector_norm(values, dim=(1, 2), keepdim=True)
    return length.clamp(min=1e-12)


def project_to_simplex(rows: Tensor, size: float) -> Tensor:
    """Project rows [..., k] onto the simplex: the nearest rows without negative entries that sum to `size`."""
    ordered = rows.sort(-1, descending=True).values
    rank = torch.arange(1, rows.shape[-1] + 1, dtype=rows.dtype, device=rows.device)
    excess = (ordered.cumsum(-1) - size) / rank
    last = (ordered > excess).sum(-1, keepdim=True) - 1
    return (rows - excess.gather(-1, last)).clamp(min=0)
