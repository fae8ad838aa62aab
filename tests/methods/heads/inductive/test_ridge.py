from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from shotproof.methods.heads.inductive.ridge import RidgeRegression
from tests.drawn_tasks import draw


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
