from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shotproof.core.errors import InputError
from shotproof.stats.intervals import (
    MOST,
    Estimate,
    Interval,
    Needed,
    Spread,
    check_level,
    gap_interval,
    needed,
    sampler_interval,
)

shares = st.floats(0, 1).map(lambda value: round(value, 3))
varied = st.lists(shares, min_size=2, max_size=40).filter(lambda values: np.std(values) > 1e-6)
levels = st.floats(0.5, 0.999)


@given(varied, levels)
def test_intervals_over_tasks_are_students(values: list[float], level: float) -> None:
    interval = sampler_interval(values, level)
    low, high = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-10)
    assert interval.half_width == pytest.approx((high - low) / 2)
    assert (interval.covers, interval.level) == ("sampler", level)


@given(varied)
def test_the_p_value_is_students(values: list[float]) -> None:
    estimate = Estimate.over_tasks(np.array(values) - 0.5)
    assert estimate.p_value() == pytest.approx(stats.ttest_1samp(values, 0.5).pvalue, abs=1e-10)


@given(varied, varied, levels)
def test_the_gap_is_welchs(random: list[float], biased: list[float], level: float) -> None:
    gap = gap_interval(random, biased, level)
    expected = stats.ttest_ind(random, biased, equal_var=False).confidence_interval(level)
    assert (gap.low, gap.high) == pytest.approx((expected.low, expected.high), abs=1e-10)
    assert gap.mean == pytest.approx(np.mean(random) - np.mean(biased))


@pytest.mark.parametrize(
    ("values", "reason"),
    [([0.4], "one task"), ([1.0] * 600, "all 600 tasks have the same value"), ([0.1] * 3, "all 3 tasks")],
)
def test_where_there_is_no_variance_the_interval_is_refused_with_a_reason(values: list[float], reason: str) -> None:
    interval = sampler_interval(values)
    assert interval.mean == pytest.approx(values[0])
    assert reason in str(interval.refused)
    assert math.isnan(interval.low)
    assert interval.bounds is None
    for gap in (gap_interval(values, [0.1, 0.2]), gap_interval([0.1, 0.2], values)):
        assert reason in str(gap.refused)
    widened = Estimate.over_tasks(values).plus(Spread(1.0, 1.0))
    assert reason in str(widened.interval("images").refused)
    assert widened.p_value() == 1


def test_no_tasks_is_an_error() -> None:
    with pytest.raises(InputError, match="no tasks"):
        sampler_interval([])


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, math.inf, math.nan])
def test_absurd_levels_are_refused(level: float) -> None:
    with pytest.raises(InputError, match="expected a share above 0 and below 1"):
        sampler_interval([0.1, 0.3], level)


def test_a_level_in_percent_is_recognised() -> None:
    with pytest.raises(InputError, match=r"did you mean 0\.95\?"):
        check_level(95)


def test_refused_intervals_keep_what_they_would_cover() -> None:
    interval = Estimate(0.7, None, "too few classes").interval("classes", 0.9)
    assert (interval.mean, interval.covers, interval.level, interval.refused) == (
        0.7,
        "classes",
        0.9,
        "too few classes",
    )


@given(st.floats(0.01, 1), st.integers(1, 50), st.floats(0.01, 1), st.integers(1, 50))
def test_freedom_of_a_sum_lies_between_that_of_its_parts_and_their_sum(a: float, n: int, b: float, m: int) -> None:
    total = Spread(a, 2 * a**2 / n) + Spread(b, 2 * b**2 / m)
    assert total.variance == pytest.approx(a + b)
    assert min(n, m) - 1e-9 <= total.freedom <= n + m + 1e-9


@given(st.floats(-1, 1), st.floats(-0.9, 0.9), st.integers(3, 60), levels)
def test_the_test_rejects_where_the_interval_excludes_zero(
    mean: float, skew: float, freedom: int, level: float
) -> None:
    estimate = Estimate(mean, Spread(0.04, 2 * 0.04**2 / freedom, skew * 0.2**3))
    interval, p_value = estimate.interval("classes", level), estimate.p_value()
    assert interval.low <= interval.high
    if abs(p_value - (1 - level)) > 1e-6:
        assert (interval.low > 0 or interval.high < 0) == (p_value < 1 - level)


def test_a_skewed_mean_has_a_longer_interval_on_its_long_side() -> None:
    interval = Estimate(0.0, Spread(1.0, 0.1, 0.5)).interval("classes")
    symmetric = Estimate(0.0, Spread(1.0, 0.1)).interval("classes")
    assert interval.high > symmetric.high
    assert -interval.low < -symmetric.low


def test_halls_scale_brings_coverage_on_skewed_units_near_the_level() -> None:
    random = np.random.default_rng(0)
    units = random.exponential(size=(3000, 15))
    third = stats.skew(units, axis=1, bias=False) * units.std(axis=1, ddof=1) ** 3 / 15**2
    covered = {"students": 0, "halls": 0}
    for values, cumulant in zip(units, third, strict=True):
        variance = values.var(ddof=1) / 15
        for name, skewed in (("students", 0.0), ("halls", cumulant)):
            interval = Estimate(values.mean(), Spread(variance, 2 * variance**2 / 14, skewed)).interval("classes")
            covered[name] += interval.low <= 1 <= interval.high
    assert covered["students"] / 3000 < 0.925
    assert covered["halls"] / 3000 > covered["students"] / 3000 + 0.01


KNOWN = 1e-9  # the variance of a variance that is known well


def interval(mean: float, variance: float, of_tasks: float, level: float = 0.95) -> Interval:
    """Of a number whose variance is known, a part of it over tasks."""
    over_tasks = Estimate(mean, Spread(of_tasks, KNOWN))
    return Estimate(mean, Spread(variance, KNOWN)).interval("images", level, over_tasks)


def test_what_is_conclusive_or_has_no_interval_needs_nothing() -> None:
    assert needed(interval(2.0, 1.0, 1.0), 100) is None
    refused = Estimate(2.0, None, "one task")
    assert needed(refused.interval(), 100) is None


@given(
    mean=st.floats(0.01, 5),
    of_tasks=st.floats(0.01, 4),
    of_data=st.floats(0, 4),
    tasks=st.integers(2, 3000),
    level=st.sampled_from([0.9, 0.95]),
)
def test_as_many_more_tasks_or_as_much_more_data_are_just_enough(
    mean: float, of_tasks: float, of_data: float, tasks: int, level: float
) -> None:
    found = needed(interval(mean, of_tasks + of_data, of_tasks, level), tasks)
    wide = stats.norm.ppf((1 + level) / 2)

    def conclusive(more_tasks: float, data: float = 1.0) -> bool:
        variance = of_tasks * tasks / (tasks + more_tasks) + of_data / data
        return bool(mean > wide * math.sqrt(variance) * (1 - 1e-5))

    if found is None:
        assert conclusive(0)
    elif found.tasks is not None:
        assert conclusive(found.tasks)
        assert found.data is None
        assert not (
            found.tasks > 1 and mean > wide * math.sqrt(of_tasks * tasks / (tasks + found.tasks - 2) + of_data) * 1.01
        )
        assert found.tasks <= MOST * tasks
    else:
        assert not conclusive(1e-3)
        if found.data is not None:
            assert 1 < found.data <= MOST
            assert conclusive((found.data - 1) * tasks, found.data)
        else:
            assert not conclusive((MOST - 1) * tasks * 0.999, MOST * 0.999)


def test_nothing_at_all_is_beyond_any_number_of_tasks() -> None:
    assert needed(interval(0.0, 1.0, 1.0), 100) == Needed(None, None)


@pytest.mark.parametrize("mean", [1.0, -1.0])
def test_gains_need_as_many_as_losses(mean: float) -> None:
    found = needed(interval(mean, 1.0, 1.0), 100)
    assert found is not None
    assert found.tasks == pytest.approx(100 * (stats.norm.ppf(0.975) ** 2 - 1), abs=2)
    assert needed(interval(mean + 40.0, 1.0, 1.0), 100, limit=40.0) == found
