"""How far two sets of features are apart: maximum mean discrepancy, and the cosine of their centroids.

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

_MEDIAN, _PERMUTATION = 1, 2  # what a random number is drawn for


@dataclass(frozen=True)
class Distance:
    """Two sets of features: `label` None is all of them.

    `mmd2` is the unbiased estimate of the squared discrepancy, which is below zero about half the time for equal
    distributions; `mmd` its root, 0 where there is none. `p_value` is that of the permutation test that both sets come
    from one distribution, NaN without permutations. `bandwidth` is sigma of the kernel exp(-|x - y|^2 / (2 sigma^2)).
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
        """Plain values; a p-value that was not asked for is null."""
        found = asdict(self)
        return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in found.items()}


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
    """How far features are from reference features.

    The kernel matrix is made a block of rows at a time, once for all permutations, and never held as a whole.

    Args:
        features: [n, d]
        reference: [m, d]
        label: of the class that both are of, for the record
        bandwidth: of the kernel; None is the median distance of all features
        permutations: for the test that both come from one distribution; 0 for none
        seed: of the permutations
        runtime: how it is computed; None is the current one

    Returns:
        The discrepancy with its p-value, and the cosine of the centroids.

    Raises:
        InputError: unequal dimensions, or fewer than two features on a side.
    """
    n, m = len(features), len(reference)
    where = f" of class '{label}'" if label is not None else ""
    if features.shape[1] != reference.shape[1]:
        raise InputError(
            f"geometry: the features have {features.shape[1]} dimensions, the reference has {reference.shape[1]}: "
            "were they made by the same encoder?"
        )
    PERMUTATIONS.check("geometry: permutations", permutations)
    SEED.check("geometry: seed", seed)
    if n < 2 or m < 2:
        raise InputError(f"geometry: {n} features{where} against {m}: a discrepancy needs two or more on each side")
    both = np.concatenate([features, reference]).astype(np.float64)
    centroids = both[:n].mean(axis=0), both[n:].mean(axis=0)
    both -= both.mean(axis=0)  # distances by inner products lose fewer digits near the origin
    sigma = median_distance(both, seed) if bandwidth is None else bandwidth
    if not sigma > 0:
        why = " (half of the features are the same)" if bandwidth is None else ""
        raise InputError(f"geometry: bandwidth {sigma:g}{where}: expected above 0{why}")
    first = _memberships(n, n + m, permutations, seed)
    found = _discrepancies(both, first, sigma, resolve(runtime))
    observed, permuted = float(found[0]), found[1:]
    # Rounding must not make a permutation that equals the data look smaller than it.
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
    """All features against all of the reference, and class by class; `left_out` are classes not in both, or too few."""

    overall: Distance
    classes: list[Distance]
    left_out: list[str]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        rows = [one.to_json() for one in self.classes]
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
    """The distance to a reference set; where both catalogs are given, of the classes that they share too.

    Args:
        features, reference: of one encoder
        catalog, reference_catalog: of the features and of the reference; items that a catalog lacks are left out
        bandwidth: of the kernel; None is the median distance of all features
        permutations: for the test that both come from one distribution; 0 for none
        seed: of the permutations
        runtime: how it is computed; None is the current one

    Returns:
        The distance of all, and per class.

    Raises:
        InputError: unequal dimensions, or fewer than two features on a side.

    Example:
        >>> import numpy as np
        >>> import shotproof as sp
        >>> near, far = (sp.Features.from_array(list("abcd"), np.eye(4, 3) + shift) for shift in (0, 5))
        >>> feature_distances(near, far, permutations=19).overall.p_value < 0.2
        True
    """
    measure = partial(distance, bandwidth=bandwidth, permutations=permutations, seed=seed, runtime=runtime)
    array, labels = _labeled(features, catalog)
    others, other_labels = _labeled(reference, reference_catalog)
    classes, left_out = [], []
    for label in sorted({*labels, *other_labels} if catalog and reference_catalog else ()):
        own, theirs = array[labels == label], others[other_labels == label]
        if min(len(own), len(theirs)) < 2:
            left_out.append(str(label))
        else:
            classes.append(measure(own, theirs, label=str(label)))
    return Distances(measure(array, others), classes, left_out)


def _labeled(features: Features, catalog: Catalog | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The values, [n, d], of the catalog's items or of all, and their labels, [n]."""
    if catalog is None:
        return features.array, np.full(len(features), "")
    labels = catalog.table.column("label").to_numpy(zero_copy_only=False)
    return features.array[features.rows_of(catalog.table.column("item"))], labels


def median_distance(features: FloatArray, seed: int = 0, points: int = MEDIAN_POINTS) -> float:
    """The median Euclidean distance between different rows of [n, d]; of `points` of them where there are more."""
    from scipy.spatial.distance import pdist

    chosen = np.argsort(bits(seed, _MEDIAN, np.arange(len(features))), kind="stable")[:points]
    return float(np.median(pdist(features[np.sort(chosen)])))


def _memberships(first: int, count: int, permutations: int, seed: int) -> FloatArray:
    """1 for the rows of the first set, else 0, [count, 1 + permutations]: as given, then permuted."""
    random = bits(seed, _PERMUTATION, np.arange(permutations)[:, None], np.arange(count))
    order = np.argsort(random, axis=1, kind="stable")
    members = np.zeros((1 + permutations, count))
    members[0, :first] = 1
    np.put_along_axis(members[1:], order[:, :first], 1.0, axis=1)
    return np.ascontiguousarray(members.T)


def _discrepancies(features: FloatArray, members: FloatArray, sigma: float, runtime: Runtime) -> FloatArray:
    """The unbiased squared discrepancy between members and the others, [permutations]."""
    count = len(features)
    squares = np.einsum("nd,nd->n", features, features)
    within = np.zeros(members.shape[1])  # sum of the kernel over pairs of members
    touching = np.zeros(members.shape[1])  # over pairs whose first is a member
    total = 0.0
    with runtime.progress_bar("comparing distributions", count) as advance:
        for start in range(0, count, BLOCK):
            rows = slice(start, start + BLOCK)
            gaps = squares[rows, None] + squares[None] - 2 * features[rows] @ features.T
            kernel = np.exp(np.maximum(gaps, 0) / (-2 * sigma**2))
            kernel[np.arange(len(kernel)), np.arange(start, start + len(kernel))] = 0  # a pair with itself
            within += np.einsum("np,np->p", members[rows], kernel @ members)
            from_row = kernel.sum(axis=1)
            touching += from_row @ members[rows]
            total += float(from_row.sum())
            advance(len(kernel))
    n = float(members[:, 0].sum())
    m = count - n
    across = touching - within
    others = total - 2 * touching + within
    found: FloatArray = within / (n * (n - 1)) + others / (m * (m - 1)) - 2 * across / (n * m)
    return found
