from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch, Starved
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.stats.data import data_spread
from shotproof.stats.drawing import Inputs
from shotproof.stats.halves import Halves, Moments
from shotproof.stats.intervals import Estimate, FloatArray
from shotproof.stats.splits import split_means
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet

DESIGN = {"way": 3, "shot": 1, "query": 4, "tasks": 60}
Data = tuple[Catalog, Attributes]


def all_sides(units: int) -> np.ndarray:
    """Every way to split units into halves: [splits, units]."""
    sides = -np.ones((len(list(combinations(range(units), units // 2))), units), dtype=np.int8)
    for split, chosen in enumerate(combinations(range(units), units // 2)):
        sides[split, list(chosen)] = 1
    return sides


def without_noise(first: FloatArray, second: FloatArray, freedom: int, sides: np.ndarray | None = None) -> Halves:
    """Halves that were evaluated on infinitely many tasks: [splits, k] each."""
    nothing = np.zeros((first.shape[1],) * 2)
    return Halves(Moments((first - second) / 2, nothing), Moments((first + second) / 2, nothing), freedom, sides)


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


def features_for(catalog: Catalog, d: int = 6, seed: int = 0) -> Features:
    random = np.random.default_rng(seed)
    labels = catalog.table.column("label").to_pylist()
    means = {label: random.normal(size=d) for label in sorted(set(labels))}
    return Features.from_array(catalog.items, np.stack([means[label] + random.normal(size=d) for label in labels]))


def test_random_and_biased_sets_on_the_same_halves_in_any_number_of_processes(data: Data) -> None:
    catalog, attributes = data
    features = features_for(catalog)
    sets = [sample(catalog, "random", **DESIGN), sample(catalog, "fewstab", attributes=attributes, **DESIGN)]
    options = {"inputs": Inputs(attributes), "splits": 12, "tasks": 10}
    alone = split_means(sets, catalog, [(features, ["ncc", "knn"])], "images", **options)
    shared = split_means(sets, catalog, [(features, ["ncc", "knn"])], "images", workers=2, **options)
    assert alone.names[:3] == [(0, 0, "ncc", "acc"), (0, 0, "ncc", "wacc"), (0, 0, "knn", "acc")]
    assert alone.halves.difference.values.shape == (12, 8)
    np.testing.assert_array_equal(alone.halves.difference.values, shared.halves.difference.values)
    np.testing.assert_array_equal(alone.halves.mean.noise, shared.halves.mean.noise)
    gap = alone.spread({(0, 0, "ncc", "wacc"): 1, (1, 0, "ncc", "wacc"): -1})
    assert gap.uncertainty > 0
    other = split_means(sets, catalog, [(features, ["ncc", "knn"])], "images", seed=1, **options)
    assert not np.array_equal(alone.halves.difference.values, other.halves.difference.values)


@pytest.mark.parametrize("units", ["images", "classes"])
def test_halves_are_balanced_and_of_the_units(data: Data, units: str) -> None:
    catalog, _ = data
    spread = data_spread(
        [units], [sample(catalog, "random", **DESIGN)], catalog, [(features_for(catalog), ["ncc"])], splits=6, tasks=5
    )
    halves = spread.means[units].halves
    if units == "classes":
        assert halves.freedom == 7
        assert halves.sides is not None
        np.testing.assert_array_equal(halves.sides.sum(axis=1), 0)
    else:
        assert (halves.freedom, halves.sides) == (8 * 39, None)


def test_items_of_one_source_stay_together(make_data: Callable[..., Data]) -> None:
    catalog, _ = make_data(source_of=2)
    tasks = sample(catalog, "random", **DESIGN)
    halves = split_means([tasks], catalog, [(features_for(catalog), ["ncc"])], "images", splits=2, tasks=3).halves
    assert halves.freedom == 8 * (20 - 1)


def test_depletion_sets_use_as_many_tasks_as_a_half_gives(data: Data) -> None:
    catalog, _ = data
    tasks = sample(catalog, "depletion", way=3, shot=1, query=4)
    means = split_means([tasks], catalog, [(features_for(catalog), ["ncc"])], "images", splits=3, tasks=500)
    assert np.isfinite(means.halves.difference.noise).all()


def test_intervals_are_wider_the_more_is_drawn_again(data: Data) -> None:
    catalog, _ = data
    features = features_for(catalog)
    tasks = sample(catalog, "random", **{**DESIGN, "tasks": 400})
    over_tasks = Estimate.over_tasks(evaluate(tasks, features, ["ncc"]).counts("ncc").accuracy_by_task())
    spread = data_spread(["images", "classes"], [tasks], catalog, [(features, ["ncc"])], splits=30, tasks=40)
    widths = [
        estimate.interval().half_width
        for estimate in (
            over_tasks,
            *(spread.widen(over_tasks, units, {(0, 0, "ncc", "acc"): 1}) for units in spread.means),
        )
    ]
    assert widths == sorted(widths)


def test_data_too_small_for_halves_is_refused_with_the_reason_and_the_rest_still_comes(
    make_data: Callable[..., Data],
) -> None:
    catalog, _ = make_data(classes=5, items=40)
    tasks = sample(catalog, "random", **DESIGN)
    spread = data_spread(["images", "classes"], [tasks], catalog, [(features_for(catalog), ["ncc"])], splits=3, tasks=5)
    assert list(spread.means) == ["images"]
    assert "need 6 classes (3 ways in each half), the data has 5" in spread.refused["classes"]
    refused = spread.widen(Estimate.over_tasks([0.1, 0.2]), "classes", {(0, 0, "ncc", "acc"): 1}).interval("classes")
    assert refused.refused == spread.refused["classes"]
    few, _ = make_data(items=9)
    with pytest.raises(Starved, match=r"need 10 items of each class .* class 'class00' has 9"):
        split_means([sample(few, "random", **DESIGN)], few, [(features_for(few), ["ncc"])], "images")


def test_bad_input_is_named(data: Data, make_data: Callable[..., Data]) -> None:
    catalog, _ = data
    features, tasks = features_for(catalog), sample(catalog, "random", **DESIGN)
    with pytest.raises(InputError, match="does not say how it was drawn"):
        split_means([TaskSet(tasks.table)], catalog, [(features, ["ncc"])], "images")
    other, _ = make_data(seed=5, classes=9)
    with pytest.raises(Mismatch, match=f"not from {other.digest}"):
        split_means([tasks], other, [(features, ["ncc"])], "images")
    means = split_means([tasks], catalog, [(features, ["ncc"])], "images", splits=2, tasks=3)
    with pytest.raises(InputError, match="no mean of"):
        means.spread({(0, 0, "knn", "acc"): 1})
    lacking = Features(features.table.filter(pa.array([False] + [True] * (len(features) - 1))))
    with pytest.raises(Mismatch, match="the features lack"):
        split_means([tasks], catalog, [(lacking, ["ncc"])], "images", splits=2)
