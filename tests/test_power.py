"""Power: how often Student's t finds a difference that is there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from shotproof.errors import InputError
from shotproof.stats.power import power, tasks_needed


def test_power_is_how_often_the_paired_interval_lies_above_zero() -> None:
    rng = np.random.default_rng(0)
    differences = 0.02 + rng.normal(scale=0.06, size=(20_000, 40))
    low = stats.ttest_1samp(differences, 0, axis=1).confidence_interval(0.95).low
    assert power(0.02, 0.06**2, 40) == pytest.approx((low > 0).mean(), abs=0.01)


def test_power_of_methods_on_tasks_of_their_own() -> None:
    rng = np.random.default_rng(1)
    first, second = (rng.normal(mean, 0.1, size=(20_000, 60)) for mean in (0.55, 0.5))
    low = stats.ttest_ind(first, second, axis=1).confidence_interval(0.9).low
    assert power(0.05, 0.01, 60, level=0.9, paired=False) == pytest.approx((low > 0).mean(), abs=0.01)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("difference", [0.5, 0.02, 0.001])
def test_the_tasks_needed_are_just_enough(difference: float, paired: bool) -> None:
    tasks = tasks_needed(difference, 0.01, chance=0.9, paired=paired)
    assert power(difference, 0.01, tasks, paired=paired) >= 0.9
    assert tasks == 2 or power(difference, 0.01, tasks - 1, paired=paired) < 0.9
    # For many tasks Student's t is normal, and the textbook's formula holds.
    normal = (stats.norm.ppf(0.975) + stats.norm.ppf(0.9)) ** 2 * 0.01 / difference**2 * (1 if paired else 2)
    assert normal <= tasks <= 1.01 * normal + 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"difference": 0}, "difference: expected more than 0 and at most 100 points, found 0"),
        ({"difference": -0.02}, "found -2"),
        ({"difference": math.nan}, "found nan"),
        ({"difference": 1e-9}, "takes more than 1,000,000,000 tasks"),
        ({"variance": 0}, "never varies"),
        ({"variance": math.nan}, "never varies"),
        ({"chance": 80}, "power: expected a share between 0 and 1"),
        ({"level": 1}, "level: expected a share between 0 and 1"),
    ],
)
def test_bad_input(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tasks_needed(**{"difference": 0.02, "variance": 0.01, **changes})
