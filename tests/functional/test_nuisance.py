"""Formulas against what differs within classes, checked against SciPy, scikit-learn and brute force."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from shotproof.functional.nuisance import (
    LowRankMap,
    context_differences,
    group_deviations,
    group_means,
    leace_map,
    nuisance_directions,
    principal_axes,
    projection_map,
    wccn_map,
    with_fixed_signs,
    within_class_axes,
    word_differences,
)

RANDOM = np.random.default_rng(3)
N, D = 400, 12
CLASSES = RANDOM.integers(0, 8, N)
VALUES = RANDOM.normal(size=(N, D)) @ RANDOM.normal(size=(D, D)) + 5 * RANDOM.normal(size=(8, D))[CLASSES]


def as_matrix(low_rank: LowRankMap) -> np.ndarray:
    """The linear part of a map, [d, d], so that y = matrix x + constant."""
    return np.diag(low_rank.scale) + low_rank.images @ low_rank.directions.T


def explained(values: np.ndarray, concepts: np.ndarray) -> float:
    """The share of the variance of concepts that least squares on values explain, both centered, largest of columns."""
    residuals = concepts - values @ np.linalg.lstsq(values, concepts, rcond=None)[0]
    return float((1 - (residuals**2).sum(0) / (concepts**2).sum(0)).max())


def test_means_and_deviations_of_groups() -> None:
    expected = np.stack([VALUES[place == CLASSES].mean(0) for place in range(8)])
    np.testing.assert_allclose(group_means(VALUES, CLASSES), expected)
    np.testing.assert_allclose(group_deviations(VALUES, CLASSES), VALUES - expected[CLASSES])


def covariance_within(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The pooled covariance, put together from its axes."""
    eigenvalues, vectors = within_class_axes(values, classes)
    covariance: np.ndarray = vectors * eigenvalues @ vectors.T
    return covariance


def test_the_covariance_is_that_of_scikit_learn() -> None:
    biased = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(VALUES, CLASSES).covariance_
    np.testing.assert_allclose(covariance_within(VALUES, CLASSES), biased * N / (N - 8), rtol=1e-9, atol=1e-12)


def test_few_rows_have_the_axes_of_their_moments() -> None:
    rows = RANDOM.normal(size=(5, 40))
    strengths, axes = principal_axes(rows)
    assert axes.shape == (40, 5)
    np.testing.assert_allclose(strengths, np.linalg.eigvalsh(rows.T @ rows)[-5:], rtol=1e-9)
    np.testing.assert_allclose(axes * strengths @ axes.T, rows.T @ rows, atol=1e-9)


@pytest.mark.parametrize("ridge", [0.1, 10])
def test_wccn_is_the_inverse_root_of_scipy_with_the_same_mean_variance(ridge: float) -> None:
    covariance = covariance_within(VALUES, CLASSES)
    matrix = as_matrix(wccn_map(*within_class_axes(VALUES, CLASSES), ridge))
    root = np.linalg.inv(scipy.linalg.sqrtm(covariance + ridge * np.trace(covariance) / D * np.eye(D)))
    np.testing.assert_allclose(matrix, root * matrix[0, 0] / root[0, 0], rtol=1e-5, atol=1e-7)
    deviations = group_deviations(VALUES, CLASSES)
    assert ((deviations @ matrix.T) ** 2).sum() == pytest.approx((deviations**2).sum(), rel=1e-5)


def test_wccn_of_few_items_has_a_small_rank() -> None:
    deviations = RANDOM.normal(size=(5, 40))
    low_rank = wccn_map(*principal_axes(deviations), 1)
    assert low_rank.directions.shape == (40, 5)
    of_all_dimensions = wccn_map(*np.linalg.eigh(deviations.T @ deviations), 1)
    np.testing.assert_allclose(as_matrix(low_rank), as_matrix(of_all_dimensions), atol=1e-9)
    of_identity = wccn_map(np.ones(6), np.eye(6), 1)
    assert of_identity.directions.shape == (6, 0)
    np.testing.assert_allclose(as_matrix(of_identity), np.eye(6), atol=1e-12)


def test_differences_of_contexts_are_means_of_cells() -> None:
    contexts = RANDOM.integers(0, 3, N)
    differences = context_differences(VALUES, CLASSES, contexts)
    cells = [(label == CLASSES) & (contexts == context) for label in range(8) for context in range(3)]
    expected = [
        np.sqrt(cell.sum()) * (VALUES[cell].mean(0) - VALUES[CLASSES[np.argmax(cell)] == CLASSES].mean(0))
        for cell in cells
        if cell.any()
    ]
    np.testing.assert_allclose(differences, expected, atol=1e-12)


def test_differences_of_words_are_between_holders_and_others() -> None:
    holds = RANDOM.random((30, 6)) < 0.4
    holds[:, 1], holds[:, 4] = True, False
    rows = VALUES[:30]
    expected = []
    for word in (0, 2, 3, 5):
        with_word, without = rows[holds[:, word]], rows[~holds[:, word]]
        weight = np.sqrt(len(with_word) * len(without) / 30)
        expected.append(weight * (with_word.mean(0) - without.mean(0)))
    np.testing.assert_allclose(word_differences(rows, scipy.sparse.csr_matrix(holds)), expected, atol=1e-12)


def test_directions_are_right_singular_vectors_of_all_parts() -> None:
    parts = [RANDOM.normal(size=(size, D)) * np.arange(1, D + 1) for size in (3, 0, 9, 40)]
    directions = nuisance_directions(iter(parts), VALUES)
    expected = np.linalg.svd(np.concatenate(parts))[2].T
    np.testing.assert_allclose(np.abs(np.sum(directions * expected, axis=0)), 1, atol=1e-9)
    assert nuisance_directions([parts[0]], VALUES).shape == (D, 3)
    assert nuisance_directions([], VALUES).shape == nuisance_directions([1e-9 * parts[0]], VALUES).shape == (D, 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_a_projection_is_idempotent_and_symmetric(rows: int, dimensions: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(size=(rows, dimensions))
    directions = nuisance_directions([differences], differences)
    matrix = as_matrix(projection_map(directions[:, : dimensions // 2]))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(matrix @ matrix, matrix, atol=1e-12)
    assert np.linalg.matrix_rank(matrix, tol=1e-9) == dimensions - min(directions.shape[1], dimensions // 2)


def test_planted_directions_are_removed_exactly() -> None:
    planted = np.linalg.qr(RANDOM.normal(size=(D, 2)))[0]
    contexts = RANDOM.integers(0, 3, N)
    clean = VALUES - VALUES @ planted @ planted.T
    shifts = np.array([[9.0, 0], [0, 4], [-5, -5]])[contexts] @ planted.T
    class_means = group_means(clean, CLASSES)[CLASSES]
    directions = nuisance_directions([context_differences(class_means + shifts, CLASSES, contexts)], VALUES)
    assert directions.shape == (D, 2)
    np.testing.assert_allclose((clean + shifts) @ as_matrix(projection_map(directions)), clean, atol=1e-9)


def test_after_leace_least_squares_tell_no_concept_within_classes() -> None:
    concepts = np.eye(3)[(VALUES[:, 0] > 0).astype(int) + (VALUES[:, 1] + RANDOM.normal(size=N) > 0)]
    erasure = leace_map(VALUES, CLASSES, concepts)
    assert erasure.directions.shape[1] == 2  # the indicators add up to 1
    erased = VALUES + (VALUES - erasure.offset) @ erasure.directions @ erasure.images.T
    concept_deviations = group_deviations(concepts, CLASSES)
    assert explained(group_deviations(VALUES, CLASSES), concept_deviations) > 0.1
    assert explained(group_deviations(erased, CLASSES), concept_deviations) < 1e-12


def test_leace_is_the_closed_form_of_the_paper_and_changes_least() -> None:
    concepts = RANDOM.normal(size=(N, 2)) + VALUES[:, :2]
    erasure = leace_map(VALUES, CLASSES, concepts)
    x, z = group_deviations(VALUES, CLASSES), group_deviations(concepts, CLASSES)
    covariance, cross = x.T @ x / N, x.T @ z / N
    whiten = scipy.linalg.inv(scipy.linalg.sqrtm(covariance))
    told = whiten @ cross
    projection = told @ scipy.linalg.pinv(told)
    expected = np.eye(D) - scipy.linalg.inv(whiten) @ projection @ whiten
    np.testing.assert_allclose(as_matrix(erasure), expected, atol=1e-9)
    np.testing.assert_allclose(erasure.offset, VALUES.mean(0))
    # Any other map A that erases has A cross = 0: add what has this property.
    free = scipy.linalg.null_space(cross.T) @ RANDOM.normal(size=(D - 2, D)) * 1e-2
    least = ((x @ (as_matrix(erasure) - np.eye(D)).T) ** 2).sum()
    for other in (free.T, -free.T, free.T[::-1]):
        assert np.abs(other @ cross).max() < 1e-9
        assert ((x @ (as_matrix(erasure) + other - np.eye(D)).T) ** 2).sum() > least
    projecting = np.eye(D) - cross @ np.linalg.pinv(cross)
    assert ((x @ (projecting - np.eye(D)).T) ** 2).sum() > least


def test_leace_of_a_singular_covariance_leaves_what_does_not_vary() -> None:
    values = np.concatenate([VALUES, np.full((N, 1), 7.0), VALUES[:, :1]], axis=1)
    concepts = VALUES[:, :1] + RANDOM.normal(size=(N, 1))
    erasure = leace_map(values, CLASSES, concepts)
    erased = values + (values - erasure.offset) @ erasure.directions @ erasure.images.T
    assert np.isfinite(erased).all()
    np.testing.assert_allclose(erased[:, D], 7)
    assert explained(group_deviations(erased, CLASSES), group_deviations(concepts, CLASSES)) < 1e-9
    assert leace_map(values, CLASSES, np.ones((N, 1))).directions.shape[1] == 0


def test_signs_are_fixed() -> None:
    columns = RANDOM.normal(size=(6, 4))
    np.testing.assert_array_equal(with_fixed_signs(columns), with_fixed_signs(-columns))
    fixed = with_fixed_signs(np.array([[-0.1, 0.7], [-0.9, -0.7], [0.4, 0]]))
    np.testing.assert_array_equal(fixed, [[0.1, 0.7], [0.9, -0.7], [-0.4, 0]])


def test_the_number_of_threads_does_not_change_the_bytes() -> None:
    code = """
import hashlib, numpy as np
from shotproof.features.fitted_map import FittedMap
from shotproof.functional.nuisance import *
random = np.random.default_rng(0)
values, classes = random.normal(size=(900, 200)) * np.geomspace(9, 1, 200), random.integers(0, 9, 900)
differences = context_differences(values, classes, random.integers(0, 4, 900))
for low_rank in (
    wccn_map(*within_class_axes(values, classes), 10),
    projection_map(nuisance_directions([differences], values)[:, :5]),
    leace_map(values, classes, np.eye(4)[random.integers(0, 4, 900)]),
):
    print(FittedMap.of(low_rank).digest)
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert runs[0] == runs[1]
