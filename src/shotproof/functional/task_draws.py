"""Counter-based random numbers of `draws` as tensors on any device, determined by a task's seed and counters alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


# As in `draws`, but as signed 64-bit integers, whose products wrap around in the same way.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def bits(seeds: Tensor, *counters: Tensor) -> Tensor:
    """Draw 64 random bits (int64) for each combination of the broadcast seeds and counters, non-negative int64."""
    state = _mix(seeds)
    for counter in counters:
        state = _mix(state ^ (counter * _GOLDEN))
    return state


def uniform(random: Tensor) -> Tensor:
    """Convert random bits to float64 in [0, 1)."""
    return _shift_right(random, 11).double() * 2.0**-53


def normal(seeds: Tensor, *counters: Tensor) -> Tensor:
    """Draw standard normal numbers, float64."""
    radius, angle = (uniform(bits(seeds, *counters, torch.full_like(seeds, part))) for part in (0, 1))
    return (-2 * (1 - radius).log()).sqrt() * (2 * math.pi * angle).cos()


def entries(seeds: Tensor, purpose: int, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return seeds and counters that identify each entry of a random matrix [B, rows, columns], by purpose."""
    task_seeds = seeds[:, None, None]
    indices = torch.arange(rows, device=seeds.device)[:, None], torch.arange(columns, device=seeds.device)
    return task_seeds, torch.full_like(task_seeds, purpose), *indices


def permutation(seeds: Tensor, *counters: int, size: int) -> Tensor:
    """Draw a permutation of 0 to size - 1 for each seed [B] and the counters: [B, size]."""
    counter_tensors = (torch.full_like(seeds, counter).unsqueeze(-1) for counter in counters)
    keys = bits(seeds.unsqueeze(-1), *counter_tensors, torch.arange(size, device=seeds.device))
    return keys.sort(dim=-1, stable=True).indices


def _mix(state: Tensor) -> Tensor:
    state = state + _GOLDEN
    state = (state ^ _shift_right(state, 30)) * _FIRST
    state = (state ^ _shift_right(state, 27)) * _SECOND
    return state ^ _shift_right(state, 31)


def _shift_right(state: Tensor, places: int) -> Tensor:
    """Shift bits right and fill with zeros."""
    shifted: Tensor = (state >> places) & (2 ** (64 - places) - 1)
    return shifted
