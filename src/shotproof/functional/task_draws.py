"""The random numbers of `draws`, on any device: for a task's seed and counters, whatever else is drawn beside them."""

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
    """64 random bits (int64) for each combination of the broadcast seeds and counters, which are non-negative int64."""
    state = _mix(seeds)
    for counter in counters:
        state = _mix(state ^ (counter * _GOLDEN))
    return state


def uniform(random: Tensor) -> Tensor:
    """Random bits to float64 in [0, 1)."""
    return _shifted(random, 11).double() * 2.0**-53


def normal(seeds: Tensor, *counters: Tensor) -> Tensor:
    """Standard normal numbers, float64."""
    radius, angle = (uniform(bits(seeds, *counters, torch.full_like(seeds, part))) for part in (0, 1))
    return (-2 * (1 - radius).log()).sqrt() * (2 * math.pi * angle).cos()


def entries(seeds: Tensor, purpose: int, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Seeds [B] and counters that give each entry of a matrix [B, rows, columns] numbers of its own, by purpose."""
    own = seeds[:, None, None]
    places = torch.arange(rows, device=seeds.device)[:, None], torch.arange(columns, device=seeds.device)
    return own, torch.full_like(own, purpose), *places


def permutation(seeds: Tensor, *counters: int, size: int) -> Tensor:
    """A permutation of 0 to size - 1 for each seed [B] under the counters: [B, size]."""
    given = (torch.full_like(seeds, counter).unsqueeze(-1) for counter in counters)
    keys = bits(seeds.unsqueeze(-1), *given, torch.arange(size, device=seeds.device))
    return keys.sort(dim=-1, stable=True).indices


def _mix(state: Tensor) -> Tensor:
    state = state + _GOLDEN
    state = (state ^ _shifted(state, 30)) * _FIRST
    state = (state ^ _shifted(state, 27)) * _SECOND
    return state ^ _shifted(state, 31)


def _shifted(state: Tensor, by: int) -> Tensor:
    """The bits moved down, zeros above them."""
    moved: Tensor = (state >> by) & (2 ** (64 - by) - 1)
    return moved
