"""Items that are near-duplicates of each other, by their features: frames of one video, crops of one photograph.

They are no independent draws, so halves of the data must not part them. Where nobody has said which items share a
source, distances tell: among independent items the ratio of the distances to the first and to the eighth neighbor,
raised to the number of dimensions that the items fill, is distributed as the smallest of seven uniform numbers. The
number of dimensions is estimated from farther neighbors (Levina and Bickel, Maximum likelihood estimation of intrinsic
dimension, NeurIPS 2004), which a few duplicates leave as they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from shotproof.core.arrays import FloatArray, IntArray

_NEIGHBORS, _FROM = 8, 4  # ratios of the distances to neighbors 4 to 7 and to neighbor 8 tell the dimensions
_RARE = 0.001  # a nearest neighbor that is nearer than that of all but this share of independent items
SHARE = 0.05  # from this share of such items on, the data has near-duplicates
MOST_ITEMS = 4_000  # of a class; in larger ones nothing is looked for


def near_duplicates(values: FloatArray, class_of: IntArray) -> IntArray | None:
    """The group of each item: near-duplicates share one; None where the data has none to speak of.

    Args:
        values: features, [items, d]
        class_of: the class of each item
    """
    nearest = np.full(len(values), -1, dtype=np.int64)
    ratios = np.ones((len(values), _NEIGHBORS))
    for label in np.unique(class_of):
        members = np.flatnonzero(class_of == label)
        if not _NEIGHBORS < len(members) <= MOST_ITEMS:
            continue
        distances = _distances(values[members])
        order = np.argsort(distances, axis=1, kind="stable")[:, :_NEIGHBORS]
        sorted_distances = np.take_along_axis(distances, order, axis=1)
        nearest[members] = members[order[:, 0]]
        last = np.maximum(sorted_distances[:, -1:], np.finfo(np.float64).tiny)
        ratios[members] = np.maximum(sorted_distances / last, 1e-12)
    there = nearest >= 0
    if not there.any():
        return None
    dimensions = 1 / max(float(-np.log(ratios[there, _FROM - 1 : -1]).mean()) / _mean_log(), 1e-9)
    rarer = (1 - _RARE) ** (1 / (_NEIGHBORS - 1))
    found = there & (ratios[:, 0] < (1 - rarer) ** (1 / dimensions))
    if found.sum() < SHARE * there.sum():
        return None
    links = scipy.sparse.coo_array(
        (np.ones(found.sum()), (np.flatnonzero(found), nearest[found])), shape=(len(values),) * 2
    )
    groups: npt.NDArray[np.int32] = scipy.sparse.csgraph.connected_components(links, directed=False)[1]
    return groups.astype(np.int64)


def _distances(values: FloatArray) -> FloatArray:
    """Between all pairs; infinite from an item to itself."""
    rows = values.astype(np.float64) - values.mean(0, dtype=np.float64)
    squares = (rows**2).sum(1)
    distances: FloatArray = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    np.fill_diagonal(distances, np.inf)
    return distances


def _mean_log() -> float:
    """The mean of -log of the ratio to the last neighbor, over these neighbors, in one dimension.

    The k-th of n uniform numbers has -log with mean 1/k + ... + 1/n.
    """
    last = _NEIGHBORS - 1
    return float(np.mean([sum(1 / i for i in range(k, last + 1)) for k in range(_FROM, last + 1)]))
