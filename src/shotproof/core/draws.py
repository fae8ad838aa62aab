"""Counter-based random numbers: a draw is a pure function of the seed and its counters, without any state.

`bits(seed, task, attempt, slot)` is the same 64 bits on every machine, in every process, whatever was drawn before.
So task t depends only on the seed and t, and whole blocks of tasks are drawn in one array operation.
Every function broadcasts like NumPy. The mixer is SplitMix64's finalizer, applied once per counter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shotproof.core.arrays import IntArray as IntArray
from shotproof.core.arrays import UInt64Array as UInt64Array

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


def bits(seed: int, *counters: Any) -> UInt64Array:
    """Draw 64 random bits for each combination of the (broadcast) counters, which are non-negative integers."""
    return further(_mix(np.asarray(seed % 2**64, dtype=np.uint64)), *counters)


def further(random: UInt64Array, *counters: Any) -> UInt64Array:
    """Mix further counters into random bits: `further(bits(seed, 1), 2)` is `bits(seed, 1, 2)`."""
    for counter in counters:
        random = _mix(np.asarray(random ^ (np.asarray(counter).astype(np.uint64) * _GOLDEN_GAMMA)))
    return random[()]


def below(random: UInt64Array, bound: Any) -> IntArray:
    """Map random bits to uniform integers in [0, bound), with a bias below bound / 2**32; 1 <= bound < 2**31."""
    high = random >> np.uint64(32)
    product: IntArray = ((high * np.asarray(bound).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    return product


def uniform(random: UInt64Array, digits: int = 53) -> npt.NDArray[np.float64]:
    """Map random bits to uniform numbers in [0, 1) with this many binary digits."""
    return (random >> np.uint64(64 - digits)).astype(np.float64) * 2.0**-digits


def distinct(random: UInt64Array, bound: Any) -> IntArray:
    """Map random bits [..., k] to k distinct integers in [0, bound), uniform over ordered selections; bound >= k."""
    bound = np.broadcast_to(np.asarray(bound, dtype=np.int64), random.shape[:-1])
    integers = np.empty(random.shape, dtype=np.int64)
    used: list[IntArray] = []
    for i in range(random.shape[-1]):
        integers[..., i] = untaken(below(random[..., i], bound - i), used)
    return integers


def untaken(rank: IntArray, used: list[IntArray]) -> IntArray:
    """Return the rank-th integers not in `used`, and insert them there; `used` is sorted, smallest first."""
    value = rank
    for used_value in used:
        value = value + (value >= used_value)
    largest = value
    for index, used_value in enumerate(used):
        used[index], largest = np.minimum(used_value, largest), np.maximum(used_value, largest)
    used.append(largest)
    return value


def _mix(state: UInt64Array) -> UInt64Array:
    """Mix an array in place, which never warns of the overflows that it is made of."""
    state += _GOLDEN_GAMMA
    state ^= state >> np.uint64(30)
    state *= _MULTIPLIER_1
    state ^= state >> np.uint64(27)
    state *= _MULTIPLIER_2
    state ^= state >> np.uint64(31)
    return state
