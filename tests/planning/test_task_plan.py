"""Plans: moments are estimated without bias, the variance follows them, and bad input is told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize, stats

from shotproof.core.errors import InputError, InsufficientData
from shotproof.planning.task_plan import ScoreMoments, TaskVariance, available_tasks, estimate_moments, plan

MOMENTS = ScoreMoments(m1=0.85, m2=0.74, m3=0.578)


def expected_accuracies(tasks: int, way: int, seed: int) -> npt.NDArray[np.float64]:
    """Accuracies mu [tasks, way] that depend on the task and on the class."""
    rng = np.random.default_rng(seed)
    return np.asarray(
        1 / (1 + np.exp(-(0.8 + 0.5 * rng.normal(size=(tasks, 1)) + 0.7 * rng.normal(size=(tasks, way)))))
    )


@pytest.mark.parametrize("way", [2, 5])
def test_moments_and_the_variance_at_any_number_of_queries_follow_from_few_queries(way: int) -> None:
    mu = expected_accuracies(100_000, way, seed=way)
    rng = np.random.default_rng(10 + way)
    moments = estimate_moments(rng.binomial(3, mu), np.full(mu.shape, 3))
    pairs = [(mu[:, c] * mu[:, d]).mean() for c in range(way) for d in range(way) if c != d]
    assert moments.m1 == pytest.approx(mu.mean(), rel=0.005)
    assert moments.m2 == pytest.approx((mu**2).mean(), rel=0.005)
    assert moments.m3 == pytest.approx(sum(pairs) / way**2, rel=0.005)
    for query in (1, 3, 30):
        measured = (100 * rng.binomial(query, mu) / query).mean(axis=1).var()
        assert moments.variance(way).at(query) == pytest.approx(measured, rel=0.02)
    assert moments.variance(way).alpha == pytest.approx(mu.mean(axis=1).var(), rel=0.03)


def test_estimates_of_many_small_pilots_are_right_on_average() -> None:
    mu = expected_accuracies(12 * 20_000, 3, seed=0)
    correct = np.random.default_rng(1).binomial(2, mu).reshape(20_000, 12, 3)
    found = [estimate_moments(counts, np.full((12, 3), 2)).variance(3) for counts in correct]
    alphas = np.array([variance.alpha for variance in found])
    assert abs(alphas.mean() - mu.mean(axis=1).var()) < 4 * alphas.std() / math.sqrt(len(alphas))


@settings(max_examples=60, deadline=None)
@given(query=st.integers(2, 20), counts=arrays(np.int64, (7, 4), elements=st.integers(0, 10**6)))
def test_at_the_pilots_own_queries_the_variance_is_the_samples(query: int, counts: npt.NDArray[np.int64]) -> None:
    correct = counts % (query + 1)
    variance = estimate_moments(correct, np.full(correct.shape, query)).variance(4)
    sample = (correct / query).mean(axis=1).var(ddof=1)
    assert variance.alpha + variance.noise / query == pytest.approx(sample, abs=1e-12)


def test_a_paired_difference_has_moments_too() -> None:
    rng = np.random.default_rng(3)
    mu = expected_accuracies(60_000, 3, seed=4)
    other = np.clip(mu + 0.1 * rng.normal(size=mu.shape), 0, 1)

    def scores(query: int) -> npt.NDArray[np.int64]:
        # One hardness per query for both methods: they tend to be right together.
        hard = rng.random((*mu.shape, query))
        return (hard < mu[..., None]).astype(np.int64) - (hard < other[..., None])

    pilot = scores(4)
    moments = estimate_moments(pilot.sum(axis=-1), np.full(mu.shape, 4), (pilot**2).sum(axis=-1))
    for query in (1, 4, 20):
        measured = (100 * scores(query)).mean(axis=(1, 2)).var()
        assert moments.variance(3).at(query) == pytest.approx(measured, rel=0.04)


def test_the_best_number_of_queries_is_the_minimum_of_the_variance_of_the_mean() -> None:
    way, shot = 5, 5
    variance = MOMENTS.variance(way)

    def of_the_mean(query: float) -> float:  # times N C / K: a task's variance over the tasks that an item gives
        return (MOMENTS.m1 / (way * query) + (query - 1) / (way * query) * MOMENTS.m2 + MOMENTS.m3 - MOMENTS.m1**2) * (
            query + shot
        )

    for query in (1, 2.5, 40):
        formula = variance.alpha * query + variance.beta(shot) / query + variance.gamma(shot)
        assert formula == pytest.approx(of_the_mean(query))
    least = optimize.minimize_scalar(of_the_mean, bounds=(1, 100), method="bounded").x
    assert variance.best_query(shot) == pytest.approx(least, rel=1e-4)


def test_more_shots_call_for_more_queries_and_more_items_do_not() -> None:
    best = [plan(MOMENTS, shot=shot, way=5, classes=50, items=600).query for shot in (1, 5, 10)]
    assert sorted(set(best)) == best
    assert {plan(MOMENTS, shot=5, way=5, classes=50, items=items).best_query for items in (60, 600)} == {
        MOMENTS.variance(5).best_query(5)
    }


def test_a_point_is_students_interval_over_the_tasks_that_the_data_gives() -> None:
    made = plan(MOMENTS, shot=5, way=5, classes=10, items=60, queries=[15, 55], level=0.9)
    at_15, at_55 = (next(point for point in made.curve if point.query == query) for query in (15, 55))
    assert at_15.tasks == available_tasks([60] * 10, 5, 20) <= 10 * 60 // (5 * 20)
    assert at_15.deviation == pytest.approx(math.sqrt(MOMENTS.variance(5).at(15)))
    rng = np.random.default_rng(0)
    sem = stats.sem(rng.normal(scale=at_15.deviation, size=(100_000, at_15.tasks)), axis=1)
    assert at_15.half_width == pytest.approx(stats.t.ppf(0.95, at_15.tasks - 1) * sem.mean(), rel=0.01)
    assert at_55.tasks == 2
    assert made.query != 55  # two tasks have Student's t against them


def test_classes_of_different_sizes_give_fewer_tasks_than_their_sum() -> None:
    sizes = [200, 10, 10, 10]
    assert available_tasks(sizes, 3, 5) <= 4 < sum(sizes) // (3 * 5)
    listed = plan(MOMENTS, shot=2, way=3, items=sizes, queries=[3])
    assert next(point for point in listed.curve if point.query == 3).tasks == available_tasks(sizes, 3, 5)


def test_without_data_there_is_no_curve() -> None:
    made = plan(MOMENTS, shot=5, way=5)
    assert (made.query, made.curve) == (None, ())
    assert made.to_json()["best_query"] == pytest.approx(MOMENTS.variance(5).best_query(5))


def test_where_tasks_do_not_differ_in_difficulty_more_queries_are_always_better() -> None:
    variance = TaskVariance(alpha=-0.001, noise=0.03)
    assert math.isinf(variance.best_query(5))
    assert variance.at(10) == pytest.approx(30)
    level = ScoreMoments(m1=0.5, m2=0.25, m3=0.2)  # mu is 0.5 in every class: alpha is 0
    made = plan(level, shot=10, way=5, classes=20, items=1000)
    assert made.to_json()["best_query"] is None
    widths = [point.half_width for point in made.curve if point.half_width is not None]
    assert widths == sorted(widths, reverse=True)
    assert made.query == made.curve[-1].query > 30


@pytest.mark.parametrize("way", range(2, 12))
@pytest.mark.parametrize("correct", [0, 7])
def test_an_accuracy_that_never_varies_is_refused_whatever_the_rounding(way: int, correct: int) -> None:
    moments = estimate_moments(np.full((13, way), correct), np.full((13, way), 7))
    with pytest.raises(InputError, match="in every task"):
        plan(moments, shot=5, way=way)


@given(right=arrays(np.bool_, (5, 3)))
def test_classes_all_right_or_all_wrong_can_be_planned_from(right: npt.NDArray[np.bool_]) -> None:
    if len(np.unique(right.mean(axis=1))) > 1:
        made = plan(estimate_moments(right * 7, np.full(right.shape, 7)), shot=5, way=3, classes=9, items=60)
        assert made.best_query == 0
        assert made.query == 1


@pytest.mark.parametrize(
    ("scores", "queries", "message"),
    [
        ([[3, 4]], [[5, 5]], "at least 2 tasks"),
        ([[1, 0], [1, 1]], [[1, 1], [1, 1]], "at least 2 queries in every class"),
        ([3, 4], [5, 5], r"counts of shape \[tasks, way\]"),
    ],
)
def test_pilots_that_say_too_little(scores: Any, queries: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimate_moments(scores, queries)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"moments": estimate_moments(np.full((9, 5), 15), np.full((9, 5), 15))},
            InputError,
            "100.0% .* every task",
        ),
        ({"moments": estimate_moments(np.zeros((9, 5)), np.full((9, 5), 15))}, InputError, "0.0% .* every task"),
        ({"moments": ScoreMoments(0.5, 0.6, 0.2)}, InputError, "expected 0 <= m2 <= m1 <= 1"),
        ({"moments": ScoreMoments(math.nan, 0.6, 0.2)}, InputError, "found m1 nan"),
        (
            {"level": 95},
            InputError,
            "level: expected a share above 0 and below 1, e.g. 0.95, found 95",
        ),
        ({"level": -0.5}, InputError, "found -0.5"),
        ({"level": math.nan}, InputError, "found nan"),
        ({"shot": 0}, InputError, "shot: expected a whole number from 1 to 1,000,000, found 0"),
        ({"way": 1}, InputError, "way: expected a whole number from 2 to 10,000, found 1"),
        ({"queries": [0, 5]}, InputError, "queries: expected a whole number from 1 to 1,000,000, found 0"),
        ({"queries": []}, InputError, "queries: expected a whole number from 1 to 1,000,000"),
        ({"classes": None}, InputError, "classes: expected the number"),
        ({"items": [40, 40], "classes": 3}, InputError, "items: expected 3 numbers, one per class, found 2"),
        ({"items": [40, -1], "classes": None}, InputError, "items: expected .*, found -1"),
        ({"classes": 4}, InsufficientData, "4 classes of at most 60 items .* two 5-way 7-shot tasks"),
        ({"items": 7}, InsufficientData, "20 classes of at most 7 items .* two 5-way 7-shot tasks"),
    ],
)
def test_bad_input(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"moments": MOMENTS, "shot": 7, "way": 5, "classes": 20, "items": 60, **changes}
    with pytest.raises(error, match=message):
        plan(given.pop("moments"), **given)
