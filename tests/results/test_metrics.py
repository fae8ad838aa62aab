from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shotproof.results.metrics import Counts, average_drop, rank_correlation

shares = st.floats(0, 1).map(lambda value: round(value, 3))


def test_accuracies_of_tasks_of_unequal_ways_and_queries() -> None:
    counts = Counts(np.array([4, 4, 9, 9, 9]), np.array([10, 2, 5, 5, 4]), np.array([5, 2, 5, 4, 1]))
    assert counts.accuracy_by_task().tolist() == pytest.approx([(50 + 100) / 2, (100 + 80 + 25) / 3])
    assert counts.worst_by_task().tolist() == pytest.approx([50, 25])


def test_a_class_without_queries_takes_no_part() -> None:
    counts = Counts(np.array([1, 1, 1, 2, 2]), np.array([4, 0, 5, 0, 2]), np.array([2, 0, 5, 0, 0]))
    assert counts.accuracy_by_task().tolist() == [75, 0]
    assert counts.worst_by_task().tolist() == [50, 0]


@given(ways=st.lists(st.integers(1, 5), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_accuracies_agree_with_a_loop(ways: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    task = np.repeat(np.arange(len(ways)), ways)
    queries = random.integers(1, 9, len(task))
    correct = random.integers(0, queries + 1)
    counts = Counts(task, queries, correct)
    by_task = [100 * correct[task == t] / queries[task == t] for t in range(len(ways))]
    np.testing.assert_allclose(counts.accuracy_by_task(), [each.mean() for each in by_task])
    np.testing.assert_allclose(counts.worst_by_task(), [each.min() for each in by_task])


def guessed(queries: list[int]) -> Counts:
    """One task with so many queries per class."""
    asked = np.array(queries)
    return Counts(np.zeros(len(asked), dtype=np.int64), asked, np.zeros_like(asked))


@pytest.mark.parametrize("queries", [[1, 1], [2, 3], [3, 0, 2], [1, 2, 3], [4, 0]])
def test_chance_of_the_worst_class_is_the_mean_over_all_outcomes(queries: list[int]) -> None:
    right = Fraction(1, len(queries))
    expected = Fraction(0)
    asked = [count for count in queries if count]
    for outcome in product(*(product((True, False), repeat=count) for count in asked)):
        correct = [sum(answers) for answers in outcome]
        likely = right ** sum(correct) * (1 - right) ** (sum(asked) - sum(correct))
        expected += likely * min(Fraction(one, count) for one, count in zip(correct, asked, strict=True))
    assert guessed(queries).guessed_worst_by_task().tolist() == pytest.approx([100 * float(expected)], abs=1e-10)
    assert guessed(queries).guessed_accuracy_by_task().tolist() == pytest.approx([100 / len(queries)])


@pytest.mark.parametrize("queries", [[15] * 5, [1, 15, 7, 30, 22], [10, 0, 4], [30] * 10])
def test_chance_of_the_worst_class_is_what_guessing_gives(queries: list[int]) -> None:
    draws, way = 40_000, len(queries)
    random = np.random.default_rng(7)
    correct = np.stack([random.binomial(count, 1 / way, draws) for count in queries if count])
    worst = (100 * correct / np.array([count for count in queries if count])[:, None]).min(axis=0)
    error = worst.std(ddof=1) / np.sqrt(draws)
    assert abs(guessed(queries).guessed_worst_by_task()[0] - worst.mean()) < 4 * error
    assert 0 < guessed(queries).guessed_worst_by_task()[0] < 100 / way


def test_chance_is_that_of_each_task() -> None:
    counts = Counts(np.array([3, 3, 8, 8, 8]), np.array([2, 3, 4, 0, 4]), np.array([2, 1, 4, 0, 0]))
    assert counts.guessed_accuracy_by_task().tolist() == pytest.approx([50, 100 / 3])
    alone = [guessed([2, 3]), guessed([4, 0, 4])]
    assert counts.guessed_worst_by_task().tolist() == [float(one.guessed_worst_by_task()[0]) for one in alone]


@given(st.lists(st.tuples(shares, shares), min_size=4, max_size=12))
def test_rank_correlation_is_pearsons_on_ranks(pairs: list[tuple[float, float]]) -> None:
    first, second = ([pair[i] for pair in pairs] for i in (0, 1))
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert math.isnan(rank_correlation(first, second))
    else:
        expected = np.corrcoef(stats.rankdata(first), stats.rankdata(second))[0, 1]
        assert rank_correlation(first, second) == pytest.approx(expected)


def test_of_three_or_fewer_no_rank_correlation_is_told() -> None:
    for count in (0, 1, 2, 3):
        assert math.isnan(rank_correlation(range(count), range(count)))
    assert rank_correlation(range(4), range(4)) == 1


def test_average_drop() -> None:
    assert average_drop([0.5, 0.6, 0.9], [0.4, 0.6, 0.5]) == pytest.approx(0.5 / 3)
