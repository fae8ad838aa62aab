"""Near-duplicates among items, found by their features: frames of one video, crops of one photograph.

They are not independent draws, so halves of the data must not separate them. Without recorded sources, distances reveal
them: among independent items, the ratio of the distances to the first and to the eighth neighbor, raised to the number
of dimensions that the items fill, is distributed as the smallest of seven uniform numbers. The number of dimensions is
estimated from farther neighbors (Levina and Bickel, Maximum likelihood estimation of intrinsic dimension, NeurIPS
2004), which a few duplicates do not affect.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from shotproof.core.arrays import FloatArray, IntArray

_NEIGHBORS, _FROM = 8, 4  # distance ratios of neighbors 4 to 7 to neighbor 8 estimate the dimensions
_RARE = 0.001  # share of independent items whose nearest neighbor would be this near
SHARE = 0.05  # share of such items from which the data counts as having near-duplicates
MOST_ITEMS = 4_000  # per class; larger classes are not searched


def near_duplicates(values: FloatArray, class_of: IntArray) -> IntArray | None:
    """Return the group of each item, shared by near-duplicates; None if the data has too few of them to matter.

    Args:
        values: features, [items, d]
        class_of: class of each item
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
        farthest = np.maximum(sorted_distances[:, -1:], np.finfo(np.float64).tiny)
        ratios[members] = np.maximum(sorted_distances / farthest, 1e-12)
    has_neighbors = nearest >= 0
    if not has_neighbors.any():
        return None
    dimensions = 1 / max(float(-np.log(ratios[has_neighbors, _FROM - 1 : -1]).mean()) / _mean_log(), 1e-9)
    quantile = (1 - _RARE) ** (1 / (_NEIGHBORS - 1))
    is_duplicate = has_neighbors & (ratios[:, 0] < (1 - quantile) ** (1 / dimensions))
    if is_duplicate.sum() < SHARE * has_neighbors.sum():
        return None
    links = scipy.sparse.coo_array(
        (np.ones(is_duplicate.sum()), (np.flatnonzero(is_duplicate), nearest[is_duplicate])), shape=(len(values),) * 2
    )
    groups: npt.NDArray[np.int32] = scipy.sparse.csgraph.connected_components(links, directed=False)[1]
    return groups.astype(np.int64)


def _distances(values: FloatArray) -> FloatArray:
    """Compute the distances between all pairs; infinite from an item to itself."""
    rows = values.astype(np.float64) - values.mean(0, dtype=np.float64)
    squares = (rows**2).sum(1)
    distances: FloatArray = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    np.fill_diagonal(distances, np.inf)
    return distances


def _mean_log() -> float:
    """Compute the mean of -log of the ratio to the last neighbor, over these neighbors, in one dimension.

    The k-th of n uniform numbers has -log with mean 1/k + ... + 1/n.
    """
    n_ratios = _NEIGHBORS - 1
    return float(np.mean([sum(1 / i for i in range(k, n_ratios + 1)) for k in range(_FROM, n_ratios + 1)]))
