"""Distances between two sets of features: maximum mean discrepancy, and the cosine of their centroids.

SpurAudio, appendix J (Fig. 14).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from shotproof.analysis.context_effect import AnyFloats, FloatArray, cosines
from shotproof.catalog.catalog import Catalog
from shotproof.core.draws import bits
from shotproof.core.errors import InputError
from shotproof.core.limits import PERMUTATIONS, SEED
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.features.features import Features

BLOCK = 1024
MEDIAN_POINTS = 2000

_MEDIAN, _PERMUTATION = 1, 2  # keys of the random numbers


@dataclass(frozen=True)
class Distance:
    """Distance between two sets of features, of one class or overall (`label` None).

    `mmd2` is the unbiased estimate of the squared discrepancy, which is negative about half the time for equal
    distributions; `mmd` is its root, or 0 if it is negative. `p_value` is from the permutation test that both sets come
    from one distribution; NaN without permutations. `bandwidth` is sigma of the kernel exp(-|x - y|^2 / (2 sigma^2)).
    """

    label: str | None
    count: int
    reference_count: int
    mmd2: float
    mmd: float
    p_value: float
    bandwidth: float
    centroid_cosine: float

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values; a p-value that was not computed is null."""
        values = asdict(self)
        return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in values.items()}


def distance(
    features: AnyFloats,
    reference: AnyFloats,
    *,
    label: str | None = None,
    bandwidth: float | None = None,
    permutations: int = 200,
    seed: int = 0,
    runtime: Runtime | None = None,
) -> Distance:
    """Compute the distance of features from reference features.

    The kernel matrix is computed one block of rows at a time, once for all permutations, and is never stored in full.

    Args:
        features: features, [n, d]
        reference: reference features, [m, d]
        label: class of both, stored in the result
        bandwidth: bandwidth of the kernel; None means the median distance of all features
        permutations: number of permutations of the test; 0 means no test
        seed: seed of the permutations
        runtime: runtime for the computation; None means the current one

    Returns:
        The discrepancy with its p-value, and the cosine of the centroids.

    Raises:
        InputError: dimensions differ, or a side has fewer than two features.
    """
    n, m = len(features), len(reference)
    of_class = f" of class '{label}'" if label is not None else ""
    if features.shape[1] != reference.shape[1]:
        raise InputError(
            f"geometry: the features have {features.shape[1]} dimensions, the reference has {reference.shape[1]}: "
            "were they made by the same encoder?"
        )
    PERMUTATIONS.check("geometry: permutations", permutations)
    SEED.check("geometry: seed", seed)
    if n < 2 or m < 2:
        raise InputError(
            f"geometry: {n} features{of_class} against {m}: the discrepancy needs at least two on each side"
        )
    both = np.concatenate([features, reference]).astype(np.float64)
    centroids = both[:n].mean(axis=0), both[n:].mean(axis=0)
    both -= both.mean(axis=0)  # distances from inner products are more precise near the origin
    sigma = median_distance(both, seed) if bandwidth is None else bandwidth
    if not sigma > 0:
        reason = " (at least half of the pairs of features are identical)" if bandwidth is None else ""
        raise InputError(f"geometry: bandwidth {sigma:g}{of_class}: expected a number above 0{reason}")
    memberships = _memberships(n, n + m, permutations, seed)
    discrepancies = _discrepancies(both, memberships, sigma, resolve(runtime))
    observed, permuted = float(discrepancies[0]), discrepancies[1:]
    # With rounding, a permutation equal to the data must still count as large.
    as_far = int((permuted >= observed - 1e-12).sum())
    return Distance(
        label,
        count=n,
        reference_count=m,
        mmd2=observed,
        mmd=math.sqrt(max(observed, 0.0)),
        p_value=(1 + as_far) / (1 + permutations) if permutations else math.nan,
        bandwidth=sigma,
        centroid_cosine=float(cosines(centroids[0][None], centroids[1][None])[0]),
    )


@dataclass(frozen=True)
class Distances:
    """Distances overall and per class; `left_out` lists classes that are not in both sets or have too few features."""

    overall: Distance
    classes: list[Distance]
    left_out: list[str]

    def to_json(self) -> dict[str, Any]:
        """Convert to plain values."""
        rows = [class_distance.to_json() for class_distance in self.classes]
        return {"overall": self.overall.to_json(), "classes": rows, "left_out": self.left_out}


def feature_distances(
    features: Features,
    reference: Features,
    *,
    catalog: Catalog | None = None,
    reference_catalog: Catalog | None = None,
    bandwidth: float | None = None,
    permutations: int = 200,
    seed: int = 0,
    runtime: Runtime | None = None,
) -> Distances:
    """Compute the distance to a reference set and, if both catalogs are given, for each class they share.

    Args:
        features, reference: features of one encoder
        catalog, reference_catalog: catalogs of the two; items that a catalog lacks are left out
        bandwidth: bandwidth of the kernel; None means the median distance of all features
        permutations: number of permutations of the test; 0 means no test
        seed: seed of the permutations
        runtime: runtime for the computation; None means the current one

    Returns:
        The distances overall and per class.

    Raises:
        InputError: dimensions differ, or a side has fewer than two features.

    Example:
        >>> import numpy as np
        >>> import shotproof as sp
        >>> near, far = (sp.Features.from_array(list("abcd"), np.eye(4, 3) + shift) for shift in (0, 5))
        >>> feature_distances(near, far, permutations=19).overall.p_value < 0.2
        True
    """
    measure = partial(distance, bandwidth=bandwidth, permutations=permutations, seed=seed, runtime=runtime)
    array, labels = _arrays_and_labels(features, catalog)
    reference_array, reference_labels = _arrays_and_labels(reference, reference_catalog)
    classes, left_out = [], []
    for label in sorted({*labels, *reference_labels} if catalog and reference_catalog else ()):
        class_features, class_reference = array[labels == label], reference_array[reference_labels == label]
        if min(len(class_features), len(class_reference)) < 2:
            left_out.append(str(label))
        else:
            classes.append(measure(class_features, class_reference, label=str(label)))
    return Distances(measure(array, reference_array), classes, left_out)


def _arrays_and_labels(features: Features, catalog: Catalog | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the values [n, d] of the catalog's items, or of all items, and their labels [n]."""
    if catalog is None:
        return features.array, np.full(len(features), "")
    labels = catalog.table.column("label").to_numpy(zero_copy_only=False)
    return features.array[features.rows_of(catalog.table.column("item"))], labels


def median_distance(features: FloatArray, seed: int = 0, points: int = MEDIAN_POINTS) -> float:
    """Compute the median Euclidean distance between rows of [n, d], over a sample of at most `points` rows."""
    from scipy.spatial.distance import pdist

    sampled_rows = np.argsort(bits(seed, _MEDIAN, np.arange(len(features))), kind="stable")[:points]
    return float(np.median(pdist(features[np.sort(sampled_rows)])))


def _memberships(n_first: int, count: int, permutations: int, seed: int) -> FloatArray:
    """Return 1 for rows of the first set, else 0, [count, 1 + permutations]: the observed sets, then permutations."""
    random = bits(seed, _PERMUTATION, np.arange(permutations)[:, None], np.arange(count))
    order = np.argsort(random, axis=1, kind="stable")
    members = np.zeros((1 + permutations, count))
    members[0, :n_first] = 1
    np.put_along_axis(members[1:], order[:, :n_first], 1.0, axis=1)
    return np.ascontiguousarray(members.T)


def _discrepancies(features: FloatArray, members: FloatArray, sigma: float, runtime: Runtime) -> FloatArray:
    """Compute the unbiased squared discrepancy between members and non-members, [permutations]."""
    count = len(features)
    squares = np.einsum("nd,nd->n", features, features)
    within = np.zeros(members.shape[1])  # sum of the kernel over pairs of members
    from_members = np.zeros(members.shape[1])  # sum of the kernel over pairs whose first element is a member
    total = 0.0
    with runtime.progress_bar("comparing distributions", count) as advance:
        for start in range(0, count, BLOCK):
            rows = slice(start, start + BLOCK)
            gaps = squares[rows, None] + squares[None] - 2 * features[rows] @ features.T
            kernel = np.exp(np.maximum(gaps, 0) / (-2 * sigma**2))
            kernel[np.arange(len(kernel)), np.arange(start, start + len(kernel))] = (
                0  # exclude pairs of a row with itself
            )
            within += np.einsum("np,np->p", members[rows], kernel @ members)
            from_row = kernel.sum(axis=1)
            from_members += from_row @ members[rows]
            total += float(from_row.sum())
            advance(len(kernel))
    n = float(members[:, 0].sum())
    m = count - n
    across = from_members - within
    within_others = total - 2 * from_members + within
    discrepancies: FloatArray = within / (n * (n - 1)) + within_others / (m * (m - 1)) - 2 * across / (n * m)
    return discrepancies
