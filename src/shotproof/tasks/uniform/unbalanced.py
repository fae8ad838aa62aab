"""Query counts that differ between the classes of a task: Dirichlet shares, as in α-TIM (Veilleux et al., 2021).

The shares of a total of queries are drawn from a symmetric Dirichlet distribution and rounded by largest remainders,
which is what α-TIM's step-by-step rounding amounts to. A class may get no query at all.
"""

from __future__ import annotations

import numpy as np

from shotproof.core import draws
from shotproof.core.arrays import FloatArray, IntArray, UInt64Array

LEAST_ALPHA = 0.01  # below it, shares are too small for floating point, and nearly all are 0 anyway
_TINY = np.finfo(np.float64).tiny


def dirichlet_counts(random: UInt64Array, alpha: float, total: int, most: IntArray) -> IntArray:
    """Random bits [t, way] to counts [t, way] that add up to `total`, none above `most` [t, way].

    What a class cannot take goes to the others, in proportion to their shares.
    """
    from scipy import special

    gamma = np.maximum(special.gammaincinv(alpha, draws.uniform(random)), _TINY)
    shares = gamma / gamma.sum(axis=1, keepdims=True)
    counts = largest_remainders(shares, np.full(len(shares), total))
    for task in np.flatnonzero((counts > most).any(axis=1)):
        counts[task] = _bounded(shares[task], total, most[task])
    return counts


def largest_remainders(shares: FloatArray, totals: IntArray) -> IntArray:
    """Shares [t, k] of totals [t] as whole numbers: rounded down, and the rest to the largest remainders."""
    quotas = np.round(shares * totals[:, None], 9)  # so that no platform's last bit decides
    counts = np.floor(quotas).astype(np.int64)
    rank = np.argsort(np.argsort(counts - quotas, axis=1, kind="stable"), axis=1, kind="stable")
    counts += rank < (totals - counts.sum(axis=1))[:, None]
    return counts


def _bounded(shares: FloatArray, total: int, most: IntArray) -> IntArray:
    """The counts of one task, [way]: classes with too much are filled up and the others share what is left."""
    counts, full = most.copy(), np.zeros(len(most), dtype=np.bool_)
    while True:
        rest = shares[~full] / shares[~full].sum()
        counts[~full] = largest_remainders(rest[None], np.array([total - most[full].sum()]))[0]
        if (counts <= most).all():
            return counts
        full |= counts >= most
        counts[full] = most[full]
