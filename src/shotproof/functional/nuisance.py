"""What differs within classes, and linear maps that shrink or remove it, in closed form.

Rows are items, in float64. Classes, contexts and the like are integers from 0, one per row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy

from shotproof.core.arrays import FloatArray, IntArray

NEGLIGIBLE_VARIANCE = 1e-10  # relative to the largest: float32 features hold nothing smaller
NEGLIGIBLE_MOMENT = 1e-13  # squared differences, relative to all squares: rounding to float32 makes about 1e-15
NEGLIGIBLE_SINGULAR = 1e-9  # singular values of whitened covariances, relative to the largest
NEGLIGIBLE_FACTOR = 1e-6  # relative change of a length


class LowRankMap(NamedTuple):
    """Map x -> scale * x + sum over i of <x - offset, direction_i> * image_i.

    scale: one number per dimension, [d]
    offset: [d]
    directions, images: [d, k], one column per i
    """

    scale: FloatArray
    offset: FloatArray
    directions: FloatArray
    images: FloatArray


def group_means(values: FloatArray, groups: IntArray) -> FloatArray:
    """Compute the mean of each group, [groups, d], of rows [n, d]; groups [n] has every number from 0."""
    sizes = np.bincount(groups)
    members = scipy.sparse.csr_matrix((np.ones(len(groups)), (groups, np.arange(len(groups)))))
    means: FloatArray = (members @ values) / sizes[:, None]
    return means


def group_deviations(values: FloatArray, groups: IntArray) -> FloatArray:
    """Subtract from each row of [n, d] the mean of its group; groups: [n]."""
    deviations: FloatArray = values - group_means(values, groups)[groups]
    return deviations


def principal_axes(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Decompose the moments R'R of rows [n, d] into eigenvalues [k], ascending, and eigenvectors [d, k].

    k is the smaller of n and d: with fewer rows than dimensions, the other eigenvalues are 0.
    """
    if len(rows) >= rows.shape[1]:
        strengths, vectors = np.linalg.eigh(rows.T @ rows)
        return strengths.clip(min=0), vectors
    _, sizes, axes = np.linalg.svd(rows, full_matrices=False)
    return np.square(sizes[::-1]), axes[::-1].T


def within_class_axes(values: FloatArray, classes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Decompose the pooled covariance within classes of rows [n, d], as `principal_axes` does; classes: [n].

    The sum of squares is divided by the number of rows minus that of classes.
    """
    strengths, vectors = principal_axes(group_deviations(values, classes))
    return strengths / max(1, len(values) - len(np.unique(classes))), vectors


def context_differences(values: FloatArray, classes: IntArray, contexts: IntArray) -> FloatArray:
    """Compute the mean of each class in each context minus the mean of the class, [cells, d].

    A difference is multiplied by the square root of its number of rows.

    Args:
        values: rows, [n, d]
        classes, contexts: of each row, [n]
    """
    deviations = group_deviations(values, classes)
    cells = np.unique(np.stack([classes, contexts]), axis=1, return_inverse=True)[1].reshape(-1)
    differences: FloatArray = group_means(deviations, cells) * np.sqrt(np.bincount(cells))[:, None]
    return differences


def word_differences(values: FloatArray, holds: scipy.sparse.csr_matrix) -> FloatArray:
    """Compute the mean of the holders of each word minus that of the others, [words, d], for rows of one class.

    A difference is multiplied by sqrt(h o / (h + o)), for h holders and o others. Words that all or no rows hold are
    left out.

    Args:
        values: rows, [n, d]
        holds: whether each row holds each word, sparse [n, w]
    """
    deviations = values - values.mean(0)
    holders = np.asarray(holds.sum(0)).reshape(-1)
    some = np.flatnonzero((holders > 0) & (holders < len(values)))
    sums: FloatArray = holds[:, some].T.astype(np.float64) @ deviations
    # The deviations add up to 0: the sum of the others is minus that of the holders.
    weights: FloatArray = np.sqrt(len(values) / (holders[some] * (len(values) - holders[some])))
    return sums * weights[:, None]


def nuisance_directions(differences: Iterable[FloatArray], values: FloatArray) -> FloatArray:
    """Compute the right singular vectors of differences, [d, k], orthonormal columns, the strongest first.

    Args:
        differences: rows that should be zero, in parts [m, d], which need not be in memory at once
        values: what they are differences of, [n, d], which tells how large a rounding error is

    Returns:
        As many directions as the rows span beyond rounding. The first entry of each that is not small is positive.
    """
    d = values.shape[1]
    rows, moment = np.empty((0, d)), np.zeros((d, d))
    is_moment = False
    for part in differences:
        rows = np.concatenate([rows, part])
        if len(rows) > d:  # moments take less memory
            rows, moment, is_moment = np.empty((0, d)), moment + rows.T @ rows, True
    strengths, vectors = np.linalg.eigh(moment + rows.T @ rows) if is_moment else principal_axes(rows)
    spanned = strengths > NEGLIGIBLE_MOMENT * (values**2).sum()
    return with_fixed_signs(vectors[:, spanned][:, ::-1])


def projection_map(directions: FloatArray) -> LowRankMap:
    """Return the map that removes orthonormal directions [d, k]: x - V V'x."""
    d = len(directions)
    return LowRankMap(np.ones(d), np.zeros(d), directions, -directions)


def wccn_map(eigenvalues: FloatArray, vectors: FloatArray, ridge: float) -> LowRankMap:
    """Compute within-class covariance normalization, x -> c (S + r I)^(-1/2) x.

    Eigenvectors whose length changes as that of the others are part of the scale, so that the rank may be small. If it
    is not, the map is the matrix itself: its images are the axes. It takes half the space, and unlike eigenvectors of
    similar eigenvalues, its entries hardly depend on rounding.

    Args:
        eigenvalues, vectors: of S, the covariance within classes, as `within_class_axes` returns them; not all are 0
        ridge: r, in mean eigenvalues of S, above 0

    Returns:
        The map, where c leaves the mean variance within classes as it is.
    """
    d = len(vectors)
    mean_ridge = ridge * eigenvalues.sum() / d
    raised = eigenvalues + mean_ridge
    unit = np.sqrt(eigenvalues.sum() / (eigenvalues / raised).sum())
    factors = unit / np.sqrt(raised)
    scale = factors[0] if len(eigenvalues) == d else unit / np.sqrt(mean_ridge)  # of the smallest eigenvalue
    others = np.abs(factors - scale) > NEGLIGIBLE_FACTOR * scale
    directions, stretches = with_fixed_signs(vectors[:, others][:, ::-1]), factors[others][::-1] - scale
    images = directions * stretches
    if 2 * len(stretches) > d:
        directions, images = directions @ images.T, np.eye(d)
    return LowRankMap(np.full(d, scale), np.zeros(d), directions, images)


def leace_map(values: FloatArray, classes: IntArray, concepts: FloatArray) -> LowRankMap:
    """Compute the least-squares erasure of concepts within classes (Belrose et al. 2023, Theorem 4.3).

    r(x) = x - W^+ P W (x - mean), where W is the whitening matrix of the rows and P the orthogonal projection onto the
    columns of W times their covariance with the concepts, both minus class means. Afterwards, no linear function of the
    rows tells the concepts any better than the class does, and no other affine map with this property changes the rows
    less.

    Args:
        values: rows, [n, d]
        classes: class of each row, [n]
        concepts: concepts of each row, [n, z], such as indicators

    Returns:
        The map, whose rank is at most z. It is 0 if no concept varies with the rows.
    """
    deviations, concept_deviations = group_deviations(values, classes), group_deviations(concepts, classes)
    strengths, vectors = principal_axes(deviations)
    variances = strengths / len(values)
    varies = (variances > NEGLIGIBLE_VARIANCE * variances[-1]) & (variances > 0)
    stds, vectors = np.sqrt(variances[varies]), vectors[:, varies]
    # In coordinates along the eigenvectors, W is a division by the standard deviations.
    whitened = (vectors.T @ (deviations.T @ concept_deviations) / len(values)) / stds[:, None]
    columns, singular_values, _ = np.linalg.svd(whitened, full_matrices=False)
    largest = singular_values.max(initial=0)
    # A correlation this small is rounding, even if it is the largest.
    is_correlated = singular_values > max(NEGLIGIBLE_SINGULAR * largest, NEGLIGIBLE_SINGULAR)
    columns = with_fixed_signs(columns[:, is_correlated])
    directions, images = vectors @ (columns / stds[:, None]), -vectors @ (columns * stds[:, None])
    return LowRankMap(np.ones(values.shape[1]), values.mean(0), directions, images)


def with_fixed_signs(columns: FloatArray) -> FloatArray:
    """Negate columns [d, k] where needed, so that the first entry of at least half the largest size is positive."""
    sizes = np.abs(columns)
    first = np.argmax(sizes >= sizes.max(axis=0, initial=0) / 2, axis=0)
    signs = np.where(np.take_along_axis(columns, first[None], axis=0)[0] < 0, -1.0, 1.0)
    flipped: FloatArray = columns * signs
    return flipped
