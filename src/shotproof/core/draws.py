"""Random numbers by counter, not by state: a draw is a pure function of the seed and of what it is drawn for.

`bits(seed, task, attempt, slot)` is the same 64 bits on every machine, in every process, whatever was drawn before,
so that task t depends on the seed and on t alone, and whole blocks of tasks are drawn in one array operation.
Every function broadcasts like NumPy. The mixer is SplitMix64's finalizer, applied once per counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shotproof.core.arrays import IntArray as IntArray
from shotproof.core.arrays import UInt64Array as UInt64Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def bits(seed: int, *counters: Any) -> UInt64Array:
    """64 random bits for each combination of the (broadcast) counters, which are non-negative integers."""
    state = _mix(np.asarray(seed % 2**64, dtype=np.uint64))
    with np.errstate(over="ignore"):
        for counter in counters:
            state = _mix(state ^ (np.asarray(counter).astype(np.uint64) * _GOLDEN))
    return state


def below(random: UInt64Array, bound: Any) -> IntArray:
    """Random bits to uniform integers in [0, bound), with a bias below bound / 2**32; 1 <= bound < 2**31."""
    high = random >> np.uint64(32)
    product: IntArray = ((high * np.asarray(bound).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    return product


def uniform(random: UInt64Array, digits: int = 53) -> npt.NDArray[np.float64]:
    """Random bits to uniform numbers in [0, 1) of so many binary digits."""
    return (random >> np.uint64(64 - digits)).astype(np.float64) * 2.0**-digits


def distinct(random: UInt64Array, bound: Any) -> IntArray:
    """Random bits [..., k] to k distinct integers in [0, bound), uniform over ordered selections; bound >= k."""
    count = random.shape[-1]
    bound = np.broadcast_to(np.asarray(bound, dtype=np.int64), random.shape[:-1])
    drawn = np.empty(random.shape, dtype=np.int64)
    taken = np.empty(random.shape, dtype=np.int64)  # the first i of them, in ascending order
    for i in range(count):
        value = below(random[..., i], bound - i)
        # The value-th integer that is not taken yet: step over those taken, smallest first.
        for j in range(i):
            value += value >= taken[..., j]
        drawn[..., i] = value
        taken[..., i] = value
        taken[..., : i + 1].sort(axis=-1)
    return drawn


def _mix(state: UInt64Array) -> UInt64Array:
    with np.errstate(over="ignore"):
        state = state + _GOLDEN
        state = (state ^ (state >> np.uint64(30))) * _FIRST
        state = (state ^ (state >> np.uint64(27))) * _SECOND
    mixed: UInt64Array = state ^ (state >> np.uint64(31))
    return mixed
