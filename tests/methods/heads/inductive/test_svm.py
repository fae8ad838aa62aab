from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from shotproof.methods.heads.inductive.svm import SupportVectorMachine
from shotproof.methods.shared.gram import one_hot
from shotproof.models.scoring.support_vectors import onto_simplex, solve_dual
from tests.drawn_tasks import draw, formula


def objective(kernel: torch.Tensor, weights: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    system = kernel + torch.eye(kernel.shape[-1])
    return ((weights * (system @ weights)) / 2 - weights * target).sum((1, 2))


def test_the_objective_of_the_fixture() -> None:
    batch, _ = formula()
    kernel, target = batch.support @ batch.support.mT, one_hot(batch.labels, 3)
    weights, _ = solve_dual(kernel, target, 0.1, 2000)
    assert objective(kernel, weights, target).item() == pytest.approx(-0.306835, abs=1e-6)


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
    back = strength * target - onto_simplex(strength * target - weights + step * gradient, strength)
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
    point = onto_simplex(rows, size)
    assert (point >= 0).all()
    assert point.sum().item() == pytest.approx(size)
    # No corner is nearer in direction: the residual makes no sharp angle with any feasible move.
    corners = size * torch.eye(len(values), dtype=torch.float64)
    assert ((corners - point) @ (rows - point).mT <= 1e-9).all()
