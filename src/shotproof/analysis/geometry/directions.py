"""Length and direction of features, as functions on arrays; all in float64, one block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyFloats = npt.NDArray[np.floating]

BLOCK = 4096


def lengths(features: AnyFloats) -> FloatArray:
    """The Euclidean norm of each row of [n, d], [n]."""
    found = np.empty(len(features))
    for rows in _blocks(len(features)):
        found[rows] = np.linalg.norm(features[rows].astype(np.float64), axis=1)
    return found


def sums(features: AnyFloats, groups: IntArray, count: int) -> FloatArray:
    """The sum of the rows of each group, [count, d]; a row of a group below 0 counts nowhere."""
    found = np.zeros((count, features.shape[1]))
    for rows in _blocks(len(features)):
        counted = groups[rows] >= 0
        np.add.at(found, groups[rows][counted], features[rows][counted].astype(np.float64))
    return found


def cosines_to_clean_mean(
    features: AnyFloats, classes: IntArray, recordings: IntArray, clean: npt.NDArray[np.bool_], leave_out: bool = False
) -> FloatArray:
    """The cosine of each feature [n, d] to the mean of its class's clean features, [n] (SpurAudio, Eq. 2).

    `leave_out` leaves a feature's own recording out of the mean it is compared with. NaN where either has no length.
    """
    means = sums(features, np.where(clean, classes, -1), int(classes.max()) + 1)
    own = sums(features, np.where(clean, recordings, -1), int(recordings.max()) + 1) if leave_out else None
    found = np.empty(len(features))
    for rows in _blocks(len(features)):
        mean = means[classes[rows]] - (0.0 if own is None else own[recordings[rows]])
        found[rows] = cosines(features[rows], mean)
    return found


def cosines_to_other_means(features: AnyFloats, classes: IntArray, clean: npt.NDArray[np.bool_]) -> FloatArray:
    """The mean cosine of each feature [n, d] to the clean means of the other classes, [n]; there must be some."""
    means = sums(features, np.where(clean, classes, -1), int(classes.max()) + 1)
    with np.errstate(invalid="ignore"):
        means /= np.linalg.norm(means, axis=1, keepdims=True)
    others = (means.sum(axis=0) - means) / (len(means) - 1)
    found = np.empty(len(features))
    for rows in _blocks(len(features)):
        found[rows] = np.einsum("nd,nd->n", features[rows].astype(np.float64), others[classes[rows]])
    return found / lengths(features)


def cosines(first: AnyFloats, second: AnyFloats) -> FloatArray:
    """The cosine of each row of [n, d] to the same row of the other, [n]; NaN where either has no length."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine: FloatArray = np.einsum("nd,nd->n", a, b) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return np.clip(cosine, -1, 1)


def turns(features: AnyFloats, first: IntArray, second: IntArray) -> FloatArray:
    """The angle between the features in rows `first` and in rows `second`, in degrees, [m]."""
    found = np.empty(len(first))
    for rows in _blocks(len(first)):
        a, b = features[first[rows]].astype(np.float64), features[second[rows]].astype(np.float64)
        a /= np.linalg.norm(a, axis=1, keepdims=True)
        b /= np.linalg.norm(b, axis=1, keepdims=True)
        # By the chord, not the arc cosine, which cannot tell small angles from none.
        half_chord = np.linalg.norm(a - b, axis=1) / 2
        found[rows] = np.degrees(2 * np.arcsin(np.minimum(half_chord, 1)))
    return found


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))
