import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shotproof.core import draws


def test_bits_are_those_of_splitmix64() -> None:
    # The finalizer in plain Python integers, as published by Vigna.
    def mix(z: int) -> int:
        z = (z + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    expected = mix(mix(mix(7) ^ (3 * 0x9E3779B97F4A7C15 % 2**64)) ^ (5 * 0x9E3779B97F4A7C15 % 2**64))
    assert int(draws.bits(7, 3, 5)) == int(draws.further(draws.bits(7, 3), 5)) == expected


@given(st.integers(0, 2**63), st.lists(st.integers(0, 10**6), min_size=1, max_size=5))
def test_a_draw_does_not_depend_on_what_is_drawn_beside_it(seed: int, counters: list[int]) -> None:
    together = draws.bits(seed, np.array(counters), 9)
    alone = [int(draws.bits(seed, counter, 9)) for counter in counters]
    assert together.tolist() == alone


@pytest.mark.parametrize("bound", [2, 3, 7, 100])
def test_integers_are_uniform(bound: int) -> None:
    values = draws.below(draws.bits(1, np.arange(50_000)), bound)
    assert values.min() == 0
    assert values.max() == bound - 1
    assert stats.chisquare(np.bincount(values)).pvalue > 1e-4


def test_neighboring_counters_are_uncorrelated() -> None:
    first = draws.bits(1, np.arange(20_000), 0) / 2**64
    second = draws.bits(1, np.arange(20_000), 1) / 2**64
    shifted = draws.bits(2, np.arange(20_000), 0) / 2**64
    assert abs(stats.pearsonr(first, second).statistic) < 0.03
    assert abs(stats.pearsonr(first[1:], first[:-1]).statistic) < 0.03
    assert abs(stats.pearsonr(first, shifted).statistic) < 0.03


@given(st.integers(1, 8), st.integers(0, 20), st.integers(0, 1000))
def test_distinct_gives_distinct_integers_in_range(count: int, spare: int, seed: int) -> None:
    drawn = draws.distinct(draws.bits(seed, np.arange(16)[:, None], np.arange(count)), count + spare)
    assert ((drawn >= 0) & (drawn < count + spare)).all()
    assert all(len(set(row)) == count for row in drawn.tolist())


def test_distinct_is_uniform_over_ordered_selections() -> None:
    drawn = draws.distinct(draws.bits(3, np.arange(60_000)[:, None], np.arange(3)), 5)
    counts = dict.fromkeys(itertools.permutations(range(5), 3), 0)
    for row in drawn.tolist():
        counts[tuple(row)] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_distinct_takes_a_bound_for_each_row() -> None:
    bounds = np.array([3, 50, 1000])
    drawn = draws.distinct(draws.bits(0, np.arange(3)[:, None], np.arange(3)), bounds)
    assert (drawn < bounds[:, None]).all()
    assert sorted(drawn[0].tolist()) == [0, 1, 2]
