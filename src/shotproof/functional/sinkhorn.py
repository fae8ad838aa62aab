"""Sinkhorn's algorithm: soft assignment of queries to classes with prescribed class totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


REACH = 600.0  # e^-600 is still a normal float64


def sinkhorn(log_kernel: Tensor, columns: Tensor | float | None, tolerance: float, max_passes: int = 1000) -> Tensor:
    """Scale a kernel [B, way, m] so that each query sums to 1 and each class to `columns` ([B, way, 1] or a number).

    Without `columns`, only queries are scaled. See `balance` for the stopping criterion.
    """
    # Queries are scaled first, so a common factor of a query's entries cancels: the largest becomes 1.
    centered = log_kernel - log_kernel.amax(1, keepdim=True)
    # A class that underflows for every query is raised into the range of float64, which is a scaling too.
    centered += (-REACH - centered.amax(2, keepdim=True)).clamp_min_(0)
    return balance(centered.exp_(), columns, tolerance, max_passes)


def balance(
    plan: Tensor, columns: Tensor | float | None, tolerance: float, max_passes: int = 1000, fixed: Tensor | None = None
) -> Tensor:
    """Scale a positive plan [B, way, rows] in place, alternately rows to 1 and classes to `columns`.

    The first rows are reset to `fixed` [B, way, n] after each pass. A task is done when no row sum has changed by more
    than `tolerance` since the previous pass; it is then frozen, independently of the others. Each pass ends with the
    classes, so rows sum to 1 only approximately.
    """
    tiny = torch.finfo(plan.dtype).tiny
    rows = plan.sum(1, keepdim=True).clamp_min_(tiny)
    if columns is None:
        return _with_fixed(fixed, plan.div_(rows))
    columns = torch.as_tensor(columns, dtype=plan.dtype, device=plan.device)
    check_every = passes_between_checks(plan.device)
    active = torch.ones_like(plan[:, :1, :1], dtype=torch.bool)
    masked = check_every > 1  # between checks, some tasks may be done
    for number in range(1, max_passes + 1):
        plan.div_(torch.where(active, rows, 1.0) if masked else rows)
        scale = columns / plan.sum(2, keepdim=True).clamp_min_(tiny)
        plan.mul_(torch.where(active, scale, 1.0) if masked else scale)
        previous, rows = rows, _with_fixed(fixed, plan).sum(1, keepdim=True).clamp_min_(tiny)
        active &= (rows - previous).abs_().amax(2, keepdim=True) > tolerance
        if number % check_every == 0:
            unfinished = int(active.sum())
            if unfinished == 0:
                break
            masked = masked or unfinished < len(plan)
    return plan


def passes_between_checks(device: torch.device) -> int:
    """Return the passes between convergence checks: a check has to wait for a GPU, but is free on a CPU."""
    return 1 if device.type == "cpu" else 4


def _with_fixed(fixed: Tensor | None, plan: Tensor) -> Tensor:
    """Set the first rows of the plan to `fixed`, if given."""
    if fixed is not None:
        plan[:, :, : fixed.shape[2]] = fixed
    return plan
