"""Query counts by a Dirichlet distribution, against its moments and a rounding written out step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shotproof.core import draws
from shotproof.tasks.uniform.unbalanced import dirichlet_counts, largest_remainders

MANY = np.full((20_000, 5), 10**6)


def random_bits(tasks: int, way: int = 5) -> np.ndarray:  # type: ignore[type-arg]
    return draws.bits(0, np.arange(tasks)[:, None], np.arange(way))


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_shares_have_the_distributions_marginals(alpha: float) -> None:
    counts = dirichlet_counts(random_bits(20_000), alpha, 100_000, MANY)
    assert (counts.sum(axis=1) == 100_000).all()
    share = counts / 100_000
    # One share of a symmetric Dirichlet distribution is Beta(alpha, (k - 1) alpha); two have a known covariance.
    assert stats.kstest(share[:, 0], stats.beta(alpha, 4 * alpha).cdf).pvalue > 1e-4
    assert np.cov(share[:, 0], share[:, 1])[0, 1] == pytest.approx(-1 / (25 * (5 * alpha + 1)), rel=0.1)


def rounded_step_by_step(shares: list[float], total: int) -> list[int]:
    """The published way: round to the nearest, then turn the one nearest to one half until the total is right."""
    quotas = [share * total for share in shares]
    while (excess := sum(math.floor(q + 0.5) for q in quotas) - total) != 0:
        turnable = [i for i, q in enumerate(quotas) if (q % 1 >= 0.5 if excess > 0 else 0 < q % 1 < 0.5)]
        nearest = min(turnable, key=lambda i: abs(quotas[i] % 1 - 0.5))
        quotas[nearest] = math.floor(quotas[nearest]) if excess > 0 else math.ceil(quotas[nearest])
    return [math.floor(q + 0.5) for q in quotas]


@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(1, 200))
def test_largest_remainders_are_the_published_rounding(seed: int, way: int, total: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.full(way, 1.0))
    assert largest_remainders(shares[None], np.array([total]))[0].tolist() == rounded_step_by_step(
        shares.tolist(), total
    )


@given(st.integers(0, 10**6), st.lists(st.integers(4, 30), min_size=2, max_size=6), st.sampled_from([0.05, 0.5, 5.0]))
def test_no_count_is_above_its_bound_and_none_is_lost(seed: int, most: list[int], alpha: float) -> None:
    total = 4 * len(most)
    counts = dirichlet_counts(draws.bits(seed, np.arange(len(most)))[None], alpha, total, np.array([most]))[0]
    assert counts.sum() == total
    assert (counts >= 0).all()
    assert (counts <= most).all()


def test_what_one_class_cannot_take_goes_to_the_others_by_their_shares() -> None:
    random = random_bits(2000, 3)
    free = dirichlet_counts(random, 1.0, 10**6, np.full((2000, 3), 10**6))
    bound = dirichlet_counts(random, 1.0, 10**6, np.full((2000, 3), 600_000))
    changed = (free > 600_000).any(axis=1)
    assert (bound[~changed] == free[~changed]).all()
    for before, after in zip(free[changed], bound[changed], strict=True):
        large = int(before.argmax())
        rest = [i for i in range(3) if i != large]
        assert after[large] == 600_000
        np.testing.assert_allclose(after[rest] / 400_000, before[rest] / before[rest].sum(), atol=0.01)
