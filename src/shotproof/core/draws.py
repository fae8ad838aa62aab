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
    return further(_mixed(np.asarray(seed % 2**64, dtype=np.uint64)), *counters)


def further(random: UInt64Array, *counters: Any) -> UInt64Array:
    """The bits of more counters: `further(bits(seed, 1), 2)` is `bits(seed, 1, 2)`."""
    for counter in counters:
        random = _mixed(np.asarray(random ^ (np.asarray(counter).astype(np.uint64) * _GOLDEN)))
    return random[()]


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
    bound = np.broadcast_to(np.asarray(bound, dtype=np.int64), random.shape[:-1])
    drawn = np.empty(random.shape, dtype=np.int64)
    taken: list[IntArray] = []
    for i in range(random.shape[-1]):
        drawn[..., i] = untaken(below(random[..., i], bound - i), taken)
    return drawn


def untaken(rank: IntArray, taken: list[IntArray]) -> IntArray:
    """The rank-th integers that are not taken yet; `taken`, smallest first, then has them, too."""
    value = rank
    for other in taken:
        value = value + (value >= other)
    largest = value
    for place, other in enumerate(taken):
        taken[place], largest = np.minimum(other, largest), np.maximum(other, largest)
    taken.append(largest)
    return value


def _mixed(state: UInt64Array) -> UInt64Array:
    """Mix an array in place, which never warns of the overflows that it is made of."""
    state += _GOLDEN
    state ^= state >> np.uint64(30)
    state *= _FIRST
    state ^= state >> np.uint64(27)
    state *= _SECOND
    state ^= state >> np.uint64(31)
    return state
