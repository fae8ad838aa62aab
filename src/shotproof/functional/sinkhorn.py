"""Sinkhorn's iteration: queries shared out among classes so that each class gets its part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


REACH = 600.0  # e^-600 is still a normal float64


def sinkhorn(log_kernel: Tensor, columns: Tensor | float | None, tolerance: float, passes: int = 1000) -> Tensor:
    """The kernel [B, way, m] scaled so that each query sums to 1 and each class to `columns` ([B, way, 1] or a number).

    Without `columns` each query is scaled and nothing else. See `balance` for when it stops.
    """
    # Queries are scaled first, so a common factor of a query's entries is free: the largest becomes 1.
    centered = log_kernel - log_kernel.amax(1, keepdim=True)
    # A class that is out of every query's reach is raised to where float64 sees it: that is a scaling, too.
    centered += (-REACH - centered.amax(2, keepdim=True)).clamp_min_(0)
    return balance(centered.exp_(), columns, tolerance, passes)


def balance(
    plan: Tensor, columns: Tensor | float | None, tolerance: float, passes: int = 1000, fixed: Tensor | None = None
) -> Tensor:
    """Scale a positive plan [B, way, rows] in place: rows to 1, then classes to `columns`, again and again.

    The first rows are set to `fixed` [B, way, n] after each pass. A task is done when no row's sum has changed by more
    than `tolerance` since the pass before; it is then frozen, whatever the others do. It ends on the classes, so rows
    sum to 1 only nearly.
    """
    tiny = torch.finfo(plan.dtype).tiny
    rows = plan.sum(1, keepdim=True).clamp_min_(tiny)
    if columns is None:
        return _with(fixed, plan.div_(rows))
    columns = torch.as_tensor(columns, dtype=plan.dtype, device=plan.device)
    check_every = passes_between_checks(plan.device)
    active = torch.ones_like(plan[:, :1, :1], dtype=torch.bool)
    masked = check_every > 1  # until a check nobody knows whether some tasks are done
    for done in range(1, passes + 1):
        plan.div_(torch.where(active, rows, 1.0) if masked else rows)
        scale = columns / plan.sum(2, keepdim=True).clamp_min_(tiny)
        plan.mul_(torch.where(active, scale, 1.0) if masked else scale)
        before, rows = rows, _with(fixed, plan).sum(1, keepdim=True).clamp_min_(tiny)
        active &= (rows - before).abs_().amax(2, keepdim=True) > tolerance
        if done % check_every == 0:
            left = int(active.sum())
            if left == 0:
                break
            masked = masked or left < len(plan)
    return plan


def passes_between_checks(device: torch.device) -> int:
    """To ask whether all tasks are done waits for a GPU, and costs nothing on a CPU."""
    return 1 if device.type == "cpu" else 4


def _with(fixed: Tensor | None, plan: Tensor) -> Tensor:
    """The plan with its first rows set to `fixed`, where given."""
    if fixed is not None:
        plan[:, :, : fixed.shape[2]] = fixed
    return plan
