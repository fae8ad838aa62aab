from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shotproof.evaluation.metrics import Counts, average_drop, gap_interval, rank_correlation, sampler_interval

shares = st.floats(0, 1).map(lambda value: round(value, 3))
several_shares = st.lists(shares, min_size=2, max_size=40)


def test_accuracies_of_tasks_of_unequal_ways_and_queries() -> None:
    counts = Counts(np.array([4, 4, 9, 9, 9]), np.array([10, 2, 5, 5, 4]), np.array([5, 2, 5, 4, 1]))
    assert counts.accuracy_by_task().tolist() == pytest.approx([(0.5 + 1) / 2, (1 + 0.8 + 0.25) / 3])
    assert counts.worst_by_task().tolist() == pytest.approx([0.5, 0.25])


@given(ways=st.lists(st.integers(1, 5), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_accuracies_agree_with_a_loop(ways: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    task = np.repeat(np.arange(len(ways)), ways)
    queries = random.integers(1, 9, len(task))
    correct = random.integers(0, queries + 1)
    counts = Counts(task, queries, correct)
    by_task = [correct[task == t] / queries[task == t] for t in range(len(ways))]
    np.testing.assert_allclose(counts.accuracy_by_task(), [each.mean() for each in by_task])
    np.testing.assert_allclose(counts.worst_by_task(), [each.min() for each in by_task])


@given(several_shares.filter(lambda values: np.std(values) > 1e-6), st.floats(0.5, 0.999))
def test_the_sampler_interval_is_students(values: list[float], level: float) -> None:
    interval = sampler_interval(values, level)
    low, high = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.half_width == pytest.approx((high - low) / 2)
    assert (interval.covers, interval.level) == ("sampler", level)


@given(*[several_shares.filter(lambda values: np.std(values) > 1e-6)] * 2)
def test_the_gap_is_welchs(random: list[float], biased: list[float]) -> None:
    gap = gap_interval(random, biased)
    expected = stats.ttest_ind(random, biased, equal_var=False).confidence_interval(0.95)
    assert (gap.low, gap.high) == pytest.approx((expected.low, expected.high))
    assert gap.mean == pytest.approx(np.mean(random) - np.mean(biased))


def test_values_that_do_not_vary_have_an_interval_of_no_width() -> None:
    assert sampler_interval([0.1] * 3).half_width == pytest.approx(0, abs=1e-12)
    gap = gap_interval([0.7] * 3, [0.1] * 5)
    assert (gap.low, gap.high) == pytest.approx((0.6, 0.6))


def test_one_task_has_a_mean_but_no_interval() -> None:
    assert sampler_interval([0.4]).mean == 0.4
    assert math.isnan(sampler_interval([0.4]).low)
    assert math.isnan(gap_interval([0.4], [0.1, 0.2]).high)
    assert math.isnan(gap_interval([0.4, 0.5], [0.1]).high)


@given(st.lists(st.tuples(shares, shares), min_size=2, max_size=12))
def test_rank_correlation_is_pearsons_on_ranks(pairs: list[tuple[float, float]]) -> None:
    first, second = ([pair[i] for pair in pairs] for i in (0, 1))
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert math.isnan(rank_correlation(first, second))
    else:
        expected = np.corrcoef(stats.rankdata(first), stats.rankdata(second))[0, 1]
        assert rank_correlation(first, second) == pytest.approx(expected)


def test_average_drop() -> None:
    assert average_drop([0.5, 0.6, 0.9], [0.4, 0.6, 0.5]) == pytest.approx(0.5 / 3)
