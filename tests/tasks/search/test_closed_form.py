"""The closed form: logit and prototype gradients against autograd, the projection against a quadratic program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import Tensor

from shotproof.tasks.search.closed_form import (
    cross_entropy_gradient,
    cross_entropy_of_column,
    expected_error_gradient,
    expected_error_of_column,
    highest,
    margins,
    project_on_l1_ball,
    prototype_gradient,
    prototype_logits,
)


def error(logits: Tensor, labels: Tensor) -> Tensor:
    """The summed probability of a wrong answer, per task."""
    return (1 - logits.softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)).sum(-1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The summed cross-entropy, per task."""
    return torch.nn.functional.cross_entropy(logits.mT, labels, reduction="none").sum(-1)


@pytest.fixture
def task() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    queries = torch.randn(2, 9, 4, generator=generator, dtype=torch.float64)
    prototypes = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    return queries, prototypes, torch.randint(3, (2, 9), generator=generator)


@pytest.mark.parametrize(
    ("loss", "gradient"), [(cross_entropy, cross_entropy_gradient), (error, expected_error_gradient)]
)
def test_gradients_agree_with_autograd(
    task: tuple[Tensor, Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    gradient: Callable[[Tensor, Tensor], Tensor],
) -> None:
    queries, prototypes, labels = task
    moving = prototypes.clone().requires_grad_()
    loss(-torch.cdist(queries, moving).square(), labels).sum().backward()  # type: ignore[no-untyped-call]
    ours = prototype_gradient(queries, prototypes, gradient(prototype_logits(queries, prototypes), labels))
    assert moving.grad is not None
    assert torch.allclose(ours, moving.grad, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "of_column"), [(cross_entropy, cross_entropy_of_column), (error, expected_error_of_column)]
)
def test_the_loss_of_a_changed_column_is_the_loss_up_to_a_constant(
    task: tuple[Tensor, Tensor, Tensor],
    loss: Callable[[Tensor, Tensor], Tensor],
    of_column: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
) -> None:
    queries, prototypes, labels = task
    logits, changed = prototype_logits(queries, prototypes), 1
    columns = torch.randn(2, 6, 9, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    others = logits.clone()
    others[..., changed] = -torch.inf
    rest = others.logsumexp(-1)
    share = (others.gather(-1, labels.unsqueeze(-1)).squeeze(-1) - rest).exp()
    ours = of_column(columns, rest, labels == changed, share)
    exact = []
    for version in range(6):
        logits[..., changed] = columns[:, version]
        exact.append(loss(logits, labels))
    exact_losses = torch.stack(exact, -1)
    assert torch.allclose(ours - ours[:, :1], exact_losses - exact_losses[:, :1], rtol=0, atol=1e-12)


def test_margins_are_positive_where_nearest_centroid_is_right(task: tuple[Tensor, Tensor, Tensor]) -> None:
    queries, prototypes, labels = task
    right = torch.cdist(queries, prototypes).argmin(-1) == labels
    assert ((margins(prototype_logits(queries, prototypes), labels) > 0) == right).all()


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=6),
    st.floats(0.1, 6),
)
def test_the_projection_is_the_nearest_point_of_the_ball(values: list[float], radius: float) -> None:
    point = np.array(values)
    ours = project_on_l1_ball(torch.from_numpy(point)[None], torch.tensor([radius], dtype=torch.float64))[0].numpy()
    # As a quadratic program: w = up - down, both not negative, their sum at most the radius.
    size = len(point)
    found = minimize(
        lambda both: np.square(both[:size] - both[size:] - point).sum(),
        np.zeros(2 * size),
        jac=lambda both: np.tile(2 * (both[:size] - both[size:] - point), 2) * np.repeat([1, -1], size),
        bounds=[(0, None)] * (2 * size),
        constraints={"type": "ineq", "fun": lambda both: radius - both.sum(), "jac": lambda both: -np.ones(2 * size)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert np.abs(ours).sum() <= radius + 1e-9
    assert ours == pytest.approx(found.x[:size] - found.x[size:], abs=1e-6)


def test_highest_takes_as_many_as_each_row_wants_and_the_first_of_ties() -> None:
    scores = torch.tensor([[1.0, 3.0, 3.0 + 1e-15, 2.0], [5.0, 4.0, 3.0, 2.0]], dtype=torch.float64)
    allowed = torch.tensor([[True, True, True, True], [False, True, True, True]])
    chosen = highest(scores, allowed, torch.tensor([1, 2]))
    assert chosen.tolist() == [[False, True, False, False], [False, True, True, False]]
