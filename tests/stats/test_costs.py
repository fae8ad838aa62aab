"""What attributes cost, against least squares by hand and on rows whose truth is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.stats.costs import MIN_TASKS, AttributeCosts, PlantedRows, attribute_costs, mismatches

WAY, WORDS = 5, ("cause", "bystander", "other")


def drawn_rows(tasks: int, correlation: float, seed: int = 0) -> PlantedRows:
    """Rows that each plant one word; the bystander's mismatch goes with that of the cause."""
    generator = np.random.default_rng(seed)
    rows = tasks * WAY
    mismatch = generator.normal(scale=0.3, size=(rows, 3))
    mismatch[:, 1] = correlation * mismatch[:, 0] + np.sqrt(1 - correlation**2) * mismatch[:, 1]
    planted = generator.integers(3, size=rows)
    mismatch[np.arange(rows), planted] += 1
    go_along = np.where(planted == 0, 1, np.where(planted == 1, 0, -1))
    together = go_along >= 0
    mismatch[np.flatnonzero(together), go_along[together]] += correlation
    labels = [f"class-{number % 7}" for number in range(rows)]
    return PlantedRows(WORDS, planted, mismatch, np.repeat(np.arange(tasks), WAY), labels)


def drawn_costs(correlation: float, cost: float, seed: int = 0, tasks: int = 300) -> AttributeCosts:
    """Costs if the mismatch in the cause alone costs, beside noise."""
    generator = np.random.default_rng(seed + 1)
    rows = drawn_rows(tasks, correlation, seed)
    lost = cost * rows.mismatch[:, 0] + generator.normal(scale=20, size=len(rows.task))
    shuffled = 60 + generator.normal(scale=20 / np.sqrt(2), size=(60, 100 * WAY))
    return attribute_costs(rows, lost, shuffled)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_cause_costs_and_a_bystander_does_not(correlation: float) -> None:
    first = wrong = 0
    for seed in range(20):
        costs = drawn_costs(correlation, 15.0, seed)
        first += "cause" in costs.costs[0].attributes
        wrong += any("cause" not in cost.attributes for cost in costs.conclusive)
    assert first >= 18
    assert wrong <= 3  # 1 is expected


def test_without_a_cause_nothing_is_conclusive_as_often_as_the_level_says() -> None:
    wrong = sum(bool(drawn_costs(0.5, 0.0, seed).conclusive) for seed in range(60))
    assert wrong <= 8  # 3 are expected, of either direction; the chance of more than 8 is 0.004


def test_costs_are_least_squares_times_the_mismatch_where_a_word_is_planted() -> None:
    rows = drawn_rows(60, 0.5)
    lost = np.random.default_rng(5).normal(size=len(rows.task))
    costs = attribute_costs(rows, lost, np.random.default_rng(6).normal(size=(30, 20 * WAY)))
    slopes = np.linalg.lstsq(rows.mismatch, lost, rcond=None)[0]
    for cost in costs.costs:
        (word,) = cost.attributes
        place = WORDS.index(word)
        where = rows.planted == place
        assert cost.cost.mean == pytest.approx(slopes[place] * rows.mismatch[where, place].mean())
        assert cost.tasks == len(np.unique(rows.task[where]))
        by_class = {name: lost[where & (np.array(rows.labels) == name)] for name in set(rows.labels)}
        within = sum(((of - of.mean()) ** 2).sum() for of in by_class.values()) / (where.sum() - len(by_class))
        surely = {name: of.mean() - np.sqrt(within / len(of)) for name, of in by_class.items()}
        assert cost.worst_label == max(surely, key=lambda name: surely[name])


def test_words_that_are_always_together_are_one() -> None:
    rows = drawn_rows(100, 0.0)
    rows.mismatch[:, 1] = rows.mismatch[:, 0]
    generator = np.random.default_rng(0)
    lost = 15 * rows.mismatch[:, 0] + generator.normal(scale=10, size=len(rows.task))
    costs = attribute_costs(rows, lost, generator.normal(scale=10, size=(60, 100 * WAY)))
    assert costs.costs[0].attributes == ("cause", "bystander")
    assert costs.costs[0].name == "cause or bystander"


def test_a_word_of_few_tasks_is_left_out() -> None:
    rows = drawn_rows(MIN_TASKS - 1, 0.0)
    costs = attribute_costs(rows, np.zeros(len(rows.task)), np.zeros((10, len(rows.task))))
    assert (costs.planted, costs.costs) == (3, [])


@settings(max_examples=30)
@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 2**31))
def test_a_mismatch_is_how_much_farther_the_own_class_is_than_the_others(way: int, query: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    support, asked = generator.integers(2, size=(2, way, 3, 2))[0], generator.integers(2, size=(way, query, 2))
    found = mismatches(support.mean(axis=1), asked.mean(axis=1), np.zeros(way, dtype=np.int64))
    for own, word in itertools.product(range(way), range(2)):
        distances = [(asked[own, :, word] - support[k, :, word].mean()) ** 2 for k in range(way)]
        others = np.mean([distances[k] for k in range(way) if k != own], axis=0)
        assert found[own, word] == pytest.approx((distances[own] - others).mean())
