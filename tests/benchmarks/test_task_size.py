"""The study of task size, in short: a U-shaped variance, its minimum, and half-widths that a plan predicts."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.task_size import accuracies, exact_moments, gaussian_world, predict, variance_of_mean


def test_exact_moments_are_those_of_simulated_tasks() -> None:
    for shot in (1, 5):
        rng = np.random.default_rng(shot)
        many = np.round(accuracies(shot, 1, 200_000, rng) / 50)
        moments = exact_moments(shot)
        assert many.mean() / 2 == pytest.approx(moments.m1, abs=0.003)
        assert (many == 2).mean() == pytest.approx(2 * moments.m3, abs=0.005)  # both classes' only query is right


def test_the_variance_of_the_mean_is_u_shaped_with_the_minimum_that_the_formula_says() -> None:
    variance = exact_moments(2).variance(2)
    best = variance.best_query(2)
    assert 3 < best < 5
    measured = {}
    for query in (1, 4, 23):
        tasks, measured[query] = variance_of_mean(2, 1000, query, worlds=3000)
        assert measured[query] == pytest.approx(variance.at(query) / tasks, rel=0.12)
    assert measured[4] < min(measured[1], measured[23])


def test_the_best_number_of_queries_grows_with_the_shots() -> None:
    best = [exact_moments(shot).variance(2).best_query(shot) for shot in (1, 2, 5, 10)]
    assert 1 <= best[0] < 2
    assert sorted(best) == best


def test_a_plan_predicts_the_half_width_of_tasks_without_replacement() -> None:
    rows = predict(*gaussian_world(), "test", seeds=40)
    assert [row.query for row in rows] == [1, 2, 5, 10, 15, 30]
    for row in rows:
        assert row.predicted == pytest.approx(row.measured, rel=0.1), row
