"""Random numbers for the change of an item, which depend on its content and on the name of the change alone.

So a stronger change does the same to an item, only more of it.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from shotproof.core import draws
from shotproof.core.arrays import IntArray

Floats = npt.NDArray[np.float64]


class ItemDraws:
    """Source of random numbers; each call continues the stream."""

    def __init__(self, content: npt.NDArray[np.generic], name: str) -> None:
        hasher = hashlib.blake2b(name.encode(), digest_size=8)
        hasher.update(np.ascontiguousarray(content).data)
        self._seed = int.from_bytes(hasher.digest(), "big")
        self._calls = 0

    def uniform(self, *shape: int) -> Floats:
        """Draw uniform numbers in [0, 1), [shape]."""
        return draws.uniform(self._bits(shape))

    def normal(self, *shape: int) -> Floats:
        """Draw standard normal numbers, [shape]."""
        from scipy.special import ndtri

        # The middle of each of 2**53 intervals: never 0 or 1, whose quantiles are infinite.
        normal: Floats = ndtri(self.uniform(*shape) + 2.0**-54)
        return normal

    def below(self, bound: int, *shape: int) -> IntArray:
        """Draw uniform integers from 0 to bound - 1, [shape]."""
        return draws.below(self._bits(shape), bound)

    def _bits(self, shape: tuple[int, ...]) -> draws.UInt64Array:
        """Draw 64 bits each, [shape]."""
        self._calls += 1
        return np.asarray(draws.bits(self._seed, self._calls, np.arange(int(np.prod(shape))).reshape(shape)))
