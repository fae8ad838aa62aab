from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression as ReferenceRegression
from torch.nn.functional import normalize

from shotproof.methods.heads.inductive.logistic import LogisticRegression
from shotproof.methods.shared.gram import one_hot
from shotproof.models.scoring.logistic_regression import fit, objective
from tests.drawn_tasks import draw, formula


def test_the_objective_of_the_fixture() -> None:
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
