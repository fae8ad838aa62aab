"""Statistical power, beside statsmodels' and simulated intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from shotproof.core.errors import InputError
from shotproof.planning.statistical_power import statistical_power, tasks_needed


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("difference", "variance", "tasks"), [(2.0, 100.0, 30), (0.5, 25.0, 900), (5.0, 16.0, 8)])
def test_power_is_that_of_a_t_test(paired: bool, difference: float, variance: float, tasks: int) -> None:
    # One-sided at half the level: an interval on the wrong side of 0 tells nothing apart.
    given = {"effect_size": difference / math.sqrt(variance), "alpha": 0.025, "alternative": "larger"}
    expected = (
        TTestPower().power(nobs=tasks, **given) if paired else TTestIndPower().power(nobs1=tasks, ratio=1, **given)
    )
    assert statistical_power(difference, variance, tasks, paired=paired) == pytest.approx(expected, abs=1e-6)


def test_power_is_the_share_of_intervals_on_the_right_side_of_zero() -> None:
    values = np.random.default_rng(0).normal(2.0, 10.0, size=(20_000, 150))
    low = values.mean(axis=1) - stats.t.ppf(0.95, 149) * stats.sem(values, axis=1)
    assert statistical_power(2.0, 100.0, 150, level=0.9) == pytest.approx((low > 0).mean(), abs=0.01)


@pytest.mark.parametrize("paired", [True, False])
def test_tasks_needed_is_the_least_number_with_the_power(paired: bool) -> None:
    needed = tasks_needed(2.0, 100.0, level=0.9, power=0.7, paired=paired)
    reached = [statistical_power(2.0, 100.0, tasks, level=0.9, paired=paired) for tasks in (needed - 1, needed)]
    assert reached[0] < 0.7 <= reached[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"difference": 0}, "difference: expected more than 0 and at most 100 points, found 0"),
        ({"difference": 101}, "found 101"),
        ({"variance": 0.0}, "the difference does not vary"),
        ({"power": 1}, "power: expected a share above 0 and below 1, e.g. 0.8, found 1"),
        ({"level": 95}, "did you mean 0.95"),
        ({"difference": 1e-5}, "takes more than 1,000,000,000 tasks"),
    ],
)
def test_bad_input_is_told(changes: dict[str, Any], message: str) -> None:
    given = {"difference": 2.0, "variance": 100.0, **changes}
    with pytest.raises(InputError, match=message):
        tasks_needed(given.pop("difference"), given.pop("variance"), **given)
