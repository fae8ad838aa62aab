"""The mismatch that chance alone gives: few shots and few queries never have quite the same shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def expected_mismatch(support: int, query: int) -> FloatArray:
    """The mean of |percentage in support - percentage in query| over all ways to divide the same items: [items + 1].

    In points. Entry k is for a word that k of the support + query items hold; the support's holders are hypergeometric.

    Args:
        support, query: the number of items of each

    Example:
        >>> expected_mismatch(1, 1).tolist()
        [0.0, 100.0, 0.0]
    """
    from scipy.stats import hypergeom

    total = support + query
    holders, drawn = np.arange(total + 1)[:, None], np.arange(support + 1)
    probability = hypergeom.pmf(drawn, total, holders, support)
    distance = 100 * np.abs(drawn / support - (holders - drawn) / query)
    expected: FloatArray = (probability * distance).sum(axis=1)
    return expected


class ChanceTable:
    """`expected_mismatch` of every pair of sizes that occurs, looked up in whole arrays; none of a size of 0."""

    def __init__(self, support: IntArray, query: IntArray) -> None:
        sizes = np.unique(np.stack([support, query], axis=1)[(support > 0) & (query > 0)], axis=0)
        tables = [expected_mismatch(int(s), int(q)) for s, q in sizes]
        self._first = np.cumsum([0, *map(len, tables)])
        self._values = np.concatenate(tables)
        self._width = int(sizes[:, 1].max()) + 1
        self._keys = sizes[:, 0] * self._width + sizes[:, 1]  # ascending, as the sizes are

    def __call__(self, support: IntArray, query: IntArray, holders: IntArray) -> FloatArray:
        """The expectation for sizes and numbers of holders, all of one length."""
        size = np.searchsorted(self._keys, support * self._width + query)
        found: FloatArray = self._values[self._first[size] + holders]
        return found
