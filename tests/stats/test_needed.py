from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shotproof.stats.intervals import Estimate, Interval, Spread
from shotproof.stats.needed import MOST, Needed, needed

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
