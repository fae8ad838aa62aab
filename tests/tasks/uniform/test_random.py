"""Random tasks: every choice is as likely, also with sources and with unequal queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shotproof.core import draws
from shotproof.core.errors import InputError
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from shotproof.tasks.uniform.random import Random, dirichlet_counts, largest_remainders


def test_classes_and_items_are_drawn_uniformly(make_data: Any) -> None:
    catalog, _ = make_data(classes=6, items=10)
    tasks = sample(catalog, "random", way=3, shot=2, query=3, tasks=4000).table
    counts = np.unique(tasks.column("label").to_pylist(), return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 1e-4
    for side in ("support", "query"):
        counts = np.unique(tasks.column(side).combine_chunks().flatten().to_pylist(), return_counts=True)[1]
        assert len(counts) == 60
        assert stats.chisquare(counts).pvalue > 1e-4


def test_with_sources_items_are_drawn_uniformly_too(make_data: Any) -> None:
    catalog, _ = make_data(classes=3, items=12, source_of=2)
    tasks = sample(catalog, "random", way=2, shot=2, query=4, tasks=3000).table
    counts = np.unique(tasks.column("support").combine_chunks().flatten().to_pylist(), return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 1e-4


def queries_of(tasks: TaskSet) -> Any:
    return np.array([len(items) for items in tasks.table.column("query").to_pylist()])


@pytest.mark.parametrize("source_of", [None, 2])
def test_unequal_queries_add_up_and_keep_to_the_items_there_are(make_data: Any, source_of: int | None) -> None:
    catalog, _ = make_data(classes=6, items=24, source_of=source_of)
    design = {"way": 4, "shot": 2, "query": 5, "tasks": 100}
    tasks = sample(catalog, "random(query_dirichlet=0.3)", **design)
    counts = queries_of(tasks).reshape(-1, 4)
    assert (counts.sum(axis=1) == 20).all()
    assert counts.min() == 0
    assert counts.max() <= (22 if source_of is None else 22 - 2)
    assert tasks.record.summary["no_query_share"] == pytest.approx(np.mean(counts == 0))
    assert check_tasks(tasks, catalog) == []
    assert tasks.first(7).digest == sample(catalog, "random(query_dirichlet=0.3)", **{**design, "tasks": 7}).digest


def test_with_unequal_queries_items_are_drawn_uniformly_too(make_data: Any) -> None:
    catalog, _ = make_data(classes=3, items=30)
    tasks = sample(catalog, "random(query_dirichlet=2)", way=2, shot=2, query=5, tasks=1500).table
    for side in ("support", "query"):
        counts = np.unique(tasks.column(side).combine_chunks().flatten().to_pylist(), return_counts=True)[1]
        # Queries come in unequal numbers, which spreads the counts of items of one class no more than at random.
        assert len(counts) == 90
        assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("alpha", [0, -1, float("inf"), True, "2"])
def test_a_parameter_that_no_distribution_has(alpha: Any) -> None:
    with pytest.raises(InputError, match=r"query_dirichlet: expected a number of at least 0.01 or None, found"):
        Random(query_dirichlet=alpha)


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
