from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from sklearn.linear_model import LogisticRegression as ReferenceRegression
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier
from torch.nn.functional import normalize

from shotproof.core.errors import InputError
from shotproof.functional.feature_rows import one_hot
from shotproof.functional.gram import LEAST
from shotproof.functional.logistic_regression import fit, objective
from shotproof.functional.support_vectors import project_to_simplex, solve_dual
from shotproof.learners.heads.inductive.centroids import CosineCentroid
from shotproof.learners.heads.inductive.kernels import (
    LogisticRegression,
    Matching,
    NearestNeighbors,
    RidgeRegression,
    SupportVectorMachine,
)
from tests.drawn_tasks import draw, formula


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), penalty=st.floats(0.01, 1000), d=st.integers(1, 30))
def test_agrees_with_scikit_learn_in_the_primal(seed: int, penalty: float, d: int) -> None:
    batch = draw(seed, tasks=1, d=d)
    target = torch.nn.functional.one_hot(batch.labels[0], batch.way).double().numpy()
    reference = Ridge(alpha=penalty, fit_intercept=False, solver="svd").fit(batch.support[0].numpy(), target)
    expected = torch.from_numpy(reference.predict(batch.query[0].numpy()))
    torch.testing.assert_close(RidgeRegression(penalty).scores(*batch)[0], expected, rtol=1e-7, atol=1e-8)


def test_copies_of_a_row_and_a_tiny_penalty_are_no_obstacle() -> None:
    batch = draw(tasks=2)
    batch.support[:, 1:4] = batch.support[:, :1] * 1e4
    assert RidgeRegression(1e-12).scores(*batch).isfinite().all()


def test_the_logistic_objective_of_the_fixture() -> None:
    batch, _ = formula()
    rows = normalize(batch.support, dim=-1)
    kernel, target = rows @ rows.mT, one_hot(batch.labels, 3)
    assert objective(kernel, target, 1.0, *fit(kernel, target, 1.0)).item() == pytest.approx(5.378951, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    strength=st.floats(0.01, 100),
    shots=st.lists(st.integers(1, 4), min_size=3, max_size=5),
    d=st.integers(2, 30),
)
def test_agrees_with_scikit_learn(seed: int, strength: float, shots: list[int], d: int) -> None:
    batch = draw(seed, tasks=1, shots=tuple(shots), d=d)
    support, query = (normalize(rows[0], dim=-1).numpy() for rows in (batch.support, batch.query))
    reference = ReferenceRegression(C=strength, tol=1e-9, max_iter=10_000).fit(support, batch.labels[0].numpy())
    scores = LogisticRegression(strength).scores(*batch)[0]
    expected = torch.from_numpy(reference.predict_proba(query))
    torch.testing.assert_close(scores.softmax(-1), expected, rtol=0, atol=2e-5)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), exponent=st.integers(-6, 6))
def test_the_gradient_vanishes_at_any_strength(seed: int, exponent: int) -> None:
    batch, strength = draw(seed, tasks=2), 10.0**exponent
    rows = normalize(batch.support, dim=-1)
    target = one_hot(batch.labels, batch.way)
    weights, bias = fit(rows @ rows.mT, target, strength)
    residual = target - (rows @ rows.mT @ weights + bias).softmax(-1)
    # At the optimum the weights are C times the residuals, and the residuals of each class sum to zero.
    close = {"rtol": 1e-5, "atol": 1e-7 + 1e-10 * strength}
    torch.testing.assert_close(rows.mT @ weights, rows.mT @ residual * strength, **close)
    assert (residual.sum(1).abs() < 1e-6).all()
    assert (weights.sum(-1).abs() < 1e-6 * strength + 1e-9).all()


def test_a_weak_fit_to_balanced_classes_is_uniform() -> None:
    batch = draw(shots=(2, 2, 2))
    probabilities = LogisticRegression(1e-9).scores(*batch).softmax(-1)
    torch.testing.assert_close(probabilities, torch.full_like(probabilities, 1 / 3))


def dual_objective(kernel: torch.Tensor, weights: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    system = kernel + torch.eye(kernel.shape[-1])
    return ((weights * (system @ weights)) / 2 - weights * target).sum((1, 2))


def test_the_dual_objective_of_the_fixture() -> None:
    batch, _ = formula()
    kernel, target = batch.support @ batch.support.mT, one_hot(batch.labels, 3)
    weights, _ = solve_dual(kernel, target, 0.1, 2000)
    assert dual_objective(kernel, weights, target).item() == pytest.approx(-0.306835, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    strength=st.floats(0.01, 10),
    scale=st.sampled_from([0.1, 1.0, 5.0]),
    shots=st.lists(st.integers(1, 5), min_size=2, max_size=5),
    d=st.integers(1, 30),
)
def test_the_optimality_conditions_hold(seed: int, strength: float, scale: float, shots: list[int], d: int) -> None:
    batch = draw(seed, tasks=2, shots=tuple(shots), d=d)
    rows, target = scale * batch.support, one_hot(batch.labels, batch.way)
    kernel = rows @ rows.mT
    weights, _ = solve_dual(kernel, target, strength, 2000)
    torch.testing.assert_close(weights.sum(-1), torch.zeros(weights.shape[:-1], dtype=torch.float64))
    assert (weights <= strength * target + 1e-12).all()
    # A point is optimal where a step against the gradient leads back to it.
    gradient = kernel @ weights + weights - target
    step = 1 / torch.linalg.eigvalsh(kernel).amax(-1)[:, None, None]
    back = strength * target - project_to_simplex(strength * target - weights + step * gradient, strength)
    torch.testing.assert_close(kernel @ back, kernel @ weights, rtol=0, atol=1e-6 * max(1.0, strength))


def test_agrees_with_a_general_solver() -> None:
    batch = draw(5, tasks=1, shots=(2, 1, 2), d=4)
    kernel, target = batch.support @ batch.support.mT, one_hot(batch.labels, 3)
    system, wanted = (kernel[0] + torch.eye(5)).numpy(), target[0].numpy()

    def value(flat: np.ndarray) -> float:
        weights = flat.reshape(5, 3)
        return float((weights * (system @ weights)).sum() / 2 - (weights * wanted).sum())

    def gradient(flat: np.ndarray) -> np.ndarray:
        return (system @ flat.reshape(5, 3) - wanted).ravel()

    sums = LinearConstraint(np.kron(np.eye(5), np.ones(3)), 0, 0)
    bounds = [(None, 0.5 * entry) for entry in wanted.ravel()]
    reference = minimize(
        value, np.zeros(15), jac=gradient, bounds=bounds, constraints=[sums], method="SLSQP", options={"ftol": 1e-14}
    )
    np.testing.assert_allclose(solve_dual(kernel, target, 0.5, 2000)[0][0].ravel(), reference.x, atol=1e-6)


def test_what_does_not_converge_is_told_once_a_task() -> None:
    batch = draw(tasks=3)
    with pytest.warns(RuntimeWarning, match="no convergence after 2 steps") as told:
        SupportVectorMachine(iterations=2).scores(*batch)
    assert len(told) == 3


@settings(deadline=None)
@given(values=st.lists(st.floats(-5, 5), min_size=1, max_size=6), size=st.floats(0.1, 3))
def test_the_nearest_point_of_a_simplex(values: list[float], size: float) -> None:
    rows = torch.tensor([values], dtype=torch.float64)
    point = project_to_simplex(rows, size)
    assert (point >= 0).all()
    assert point.sum().item() == pytest.approx(size)
    # No corner is nearer in direction: the residual makes no sharp angle with any feasible move.
    corners = size * torch.eye(len(values), dtype=torch.float64)
    assert ((corners - point) @ (rows - point).mT <= 1e-9).all()


def test_the_predictions_of_the_fixture() -> None:
    batch, _ = formula()
    assert NearestNeighbors().scores(*batch)[0].argmax(-1).tolist() == [0, 0, 0, 0, 1, 1, 2, 1, 2, 2, 0, 2]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 7))
def test_agrees_with_scikit_learn_where_the_vote_decides(seed: int, k: int) -> None:
    batch = draw(seed, tasks=1)
    reference = KNeighborsClassifier(k, metric="cosine").fit(batch.support[0].numpy(), batch.labels[0].numpy())
    votes = reference.predict_proba(batch.query[0].numpy())
    decided = (votes == votes.max(1, keepdims=True)).sum(1) == 1
    predicted = NearestNeighbors(k).scores(*batch)[0].argmax(-1).numpy()
    np.testing.assert_array_equal(predicted[decided], votes.argmax(1)[decided])


def test_equal_votes_are_decided_by_summed_similarity() -> None:
    support = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.1], [0.1, 1.0]]])
    labels = torch.tensor([[0, 1, 0, 1]])
    query = torch.tensor([[[1.0, 0.2], [0.2, 1.0]]])
    assert NearestNeighbors(4).scores(support, labels, query, 2).argmax(-1).tolist() == [[1, 1]]
    assert NearestNeighbors(1).scores(support, labels, query, 2).argmax(-1).tolist() == [[0, 1]]


def test_one_shot_is_the_cosine_centroid() -> None:
    batch = draw(shots=(1, 1, 1, 1, 1), queries=40)
    assert torch.equal(NearestNeighbors().scores(*batch).argmax(-1), CosineCentroid().scores(*batch).argmax(-1))


def test_copies_of_one_item_in_two_classes_go_to_the_lowest_class() -> None:
    batch = draw(tasks=1, shots=(1, 1, 1, 1))
    copies = batch.support[:, :1] * torch.tensor([3.0, 1.0, 7.0, 1.3]).double()[None, :, None]
    assert NearestNeighbors().scores(copies, batch.labels, batch.query, 4).argmax(-1).unique().tolist() == [0]


def test_more_neighbors_than_support_items_are_refused() -> None:
    with pytest.raises(InputError, match="k is 11, but a task has only 10 support items"):
        NearestNeighbors(11).scores(*draw())


def test_the_attention_is_shared_out() -> None:
    shares = Matching().scores(*draw()).exp() - LEAST
    torch.testing.assert_close(shares.sum(-1), torch.ones(8, 9, dtype=torch.float64))


def test_sharp_attention_is_the_nearest_neighbor() -> None:
    batch = draw()
    assert torch.equal(Matching(1e6).scores(*batch).argmax(-1), NearestNeighbors().scores(*batch).argmax(-1))


def test_opposite_rows_get_the_same_attention_as_unrelated_ones() -> None:
    support = torch.tensor([[[-1.0, 0.0], [0.0, 1.0], [-1.0, 0.1]]])
    scores = Matching().scores(support, torch.tensor([[0, 1, 2]]), torch.tensor([[[1.0, 0.0]]]), 3)
    torch.testing.assert_close(scores, scores[..., :1].expand_as(scores))
