from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from shotproof.core.errors import InputError
from shotproof.stats.halves import HalfMoments, HalvedMeans, Halves
from shotproof.stats.intervals import Estimate, FloatArray


def all_sides(units: int) -> np.ndarray:
    """Every way to split units into halves: [splits, units]."""
    sides = -np.ones((len(list(combinations(range(units), units // 2))), units), dtype=np.int8)
    for split, chosen in enumerate(combinations(range(units), units // 2)):
        sides[split, list(chosen)] = 1
    return sides


def without_noise(first: FloatArray, second: FloatArray, freedom: int, sides: np.ndarray | None = None) -> Halves:
    """Halves that were evaluated on infinitely many tasks: [splits, k] each."""
    nothing = np.zeros((first.shape[1],) * 2)
    return Halves(
        HalfMoments((first - second) / 2, nothing), HalfMoments((first + second) / 2, nothing), freedom, sides
    )


def pair_mean(
    values: FloatArray, member: np.ndarray, kernel: Callable[[FloatArray, FloatArray], FloatArray]
) -> FloatArray:
    """The mean of a kernel over all pairs of the members: [data sets]."""
    chosen = np.flatnonzero(member)
    return np.mean([kernel(values[:, i], values[:, j]) for i, j in combinations(chosen, 2)], axis=0)


def test_of_a_plain_mean_the_variance_is_that_of_its_units() -> None:
    values = np.random.default_rng(0).normal(size=8)
    sides = all_sides(8)
    first, second = (np.array([[values[side == half].mean()] for side in sides]) for half in (1, -1))
    spread = without_noise(first, second, 7).spread([1.0])
    # The mean over splits is the mean itself, so the splits add nothing; all splits together are exact.
    assert spread.variance == pytest.approx(values.var(ddof=1) / 8)
    assert without_noise(first, second, 7, sides).spread([1.0]).variance == pytest.approx(values.var(ddof=1) / 8)


def test_the_variance_is_unbiased_where_units_interact() -> None:
    def kernel(a: FloatArray, b: FloatArray) -> FloatArray:
        return a + b + 2 * a * b  # a pair of items says more than both alone, as support and query do

    data = np.random.default_rng(1).normal(size=(20_000, 6))
    sides = all_sides(6)
    first, second = (np.array([pair_mean(data, side == half, kernel) for side in sides]) for half in (1, -1))
    truth = pair_mean(data, np.ones(6), kernel).var()
    between = ((first - second) ** 2 / 4).mean()
    estimates = [without_noise(first[:, [d]], second[:, [d]], 5).spread([1.0]).variance for d in range(2000)]
    over_splits = (((first + second) / 2).var(axis=0, ddof=1)).mean()
    assert between - over_splits == pytest.approx(truth, rel=0.05)
    assert between > 1.2 * truth
    assert np.mean(estimates) == pytest.approx(truth, rel=0.15)


def test_the_noise_of_few_tasks_is_taken_off() -> None:
    random = np.random.default_rng(2)
    effect = random.normal(0, 0.01, (200, 1, 2))
    first, second = (side * effect + random.normal(0, 0.3, (200, 50, 2)) for side in (1, -1))
    halves = Halves.of_tasks(first, second, 1000)
    with_noise = float(((first.mean(1) - second.mean(1))[:, 0] ** 2 / 4).mean())
    assert with_noise > 5 * 0.01**2
    variances = [halves.spread(weights).variance for weights in ([1, 0], [0, 1], [1, -1])]
    assert max(variances) < 0.5 * with_noise
    nothing = Halves.of_tasks(first - effect, second + effect, 1000).spread([1.0, 0.0])
    assert 0 <= nothing.variance < 0.5 * with_noise
    assert nothing.uncertainty > 0


def test_paired_means_have_the_variance_of_their_difference() -> None:
    random = np.random.default_rng(3)
    shared, own = random.normal(0, 0.05, (100, 1, 1)), random.normal(0, 0.01, (100, 1, 2))
    first = shared + own + random.normal(0, 0.001, (100, 20, 2))
    second = -shared - own + random.normal(0, 0.001, (100, 20, 2))
    halves = Halves.of_tasks(first, second, 1000)
    assert halves.spread([1, -1]).variance == pytest.approx(((own[:, 0, 0] - own[:, 0, 1]) ** 2).mean(), rel=0.2)
    assert halves.spread([1, -1]).variance < 0.2 * halves.spread([1, 0]).variance
    assert halves.spread([2, -2]).variance == pytest.approx(4 * halves.spread([1, -1]).variance)


def test_the_skewness_of_few_units_is_that_of_their_mean() -> None:
    values = np.random.default_rng(4).exponential(size=10)
    sides = all_sides(10)
    first, second = (np.array([[values[side == half].mean()] for side in sides]) for half in (1, -1))
    spread = without_noise(first, second, 9, sides).spread([1.0])
    third_moment = ((values - values.mean()) ** 3).mean() * 100 / (9 * 8)
    assert spread.third == pytest.approx(third_moment / 100)
    assert without_noise(first, second, 9, sides).spread([-1.0]).third == pytest.approx(-third_moment / 100)


def test_means_are_found_by_their_names() -> None:
    random = np.random.default_rng(5)
    halves = Halves.of_tasks(random.normal(size=(6, 4, 2)), random.normal(size=(6, 4, 2)), 9)
    means = HalvedMeans(halves, ["first", "second"])
    assert means.spread({"second": 2.0}) == halves.spread([0.0, 2.0])
    with pytest.raises(InputError, match="no mean of third: expected one of first, second"):
        means.spread({"third": 1.0})


def test_where_few_items_add_most_of_a_mean_its_interval_still_covers() -> None:
    random = np.random.default_rng(6)
    rate, items = 0.03, 200  # six items or so make all of the mean, as those that two classifiers differ on
    sides = np.sign(random.permuted(np.tile(np.arange(items) - items / 2 + 0.5, (40, 1)), axis=1))
    covered = []
    for values in (random.random((400, items)) < rate).astype(float):
        if not values.any():
            continue
        halved = without_noise((sides > 0) @ values[:, None] / 100, (sides < 0) @ values[:, None] / 100, items - 1)
        interval = Estimate(values.mean(), halved.spread([1.0])).interval("images")
        covered.append(interval.low <= rate <= interval.high)
    assert np.mean(covered) > 0.94
