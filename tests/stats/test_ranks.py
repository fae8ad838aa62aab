"""Ranks as ranges: they never contradict a conclusive pair, and are as narrow as the pairs allow."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.stats.intervals import Estimate, Interval
from shotproof.stats.pairs import Conclusion, Pair, compare_pairs
from shotproof.stats.ranks import RankRange, rank_ranges

Separate = set[tuple[str, str]]


def concluded(separate: Separate, names: str) -> list[Pair]:
    def of(a: str, b: str) -> Conclusion:
        return "+" if (a, b) in separate else "-" if (b, a) in separate else "0"

    return [Pair(a, b, Interval(0.0, -1.0, 1.0), 0.5, of(a, b)) for a, b in combinations(names, 2)]


def ranked(separate: Separate, names: str) -> dict[str, RankRange]:
    """The ranges of names whose means fall in the order of the alphabet."""
    return rank_ranges({name: -float(ord(name)) for name in names}, concluded(separate, names))


@pytest.mark.parametrize(
    ("separate", "expected"),
    [
        (set(), ["1–4", "1–4", "1–4", "1–4"]),
        ({("a", "b"), ("a", "c"), ("a", "d")}, ["1", "2–4", "2–4", "2–4"]),
        ({("a", "c"), ("a", "d")}, ["1–2", "1–4", "2–4", "2–4"]),
        ({("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("a", "d"), ("b", "d")}, ["1", "2", "3", "4"]),
        ({("a", "b"), ("b", "c"), ("c", "d")}, ["1", "2", "3", "4"]),  # a is better than c, for b is
        ({("a", "b"), ("c", "d")}, ["1–3", "2–4", "1–3", "2–4"]),
    ],
)
def test_ranges_are_behind_the_better_and_before_the_worse(separate: Separate, expected: list[str]) -> None:
    for names in ("abcd", "dbca"):
        ranges = ranked(separate, names)
        assert list(ranges) == list(names)
        assert [ranges[name].span for name in "abcd"] == expected


@st.composite
def tables(draw: st.DrawFn) -> tuple[Separate, str]:
    """Any table of conclusions that agree with the means, of names in any order."""
    names = "abcdef"[: draw(st.integers(1, 6))]
    pairs = list(combinations(names, 2))
    separate = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    return separate, "".join(draw(st.permutations(names)))


@given(tables())
def test_ranges_never_contradict_a_conclusive_pair(table: tuple[Separate, str]) -> None:
    separate, names = table
    ranges = ranked(separate, names)
    for better, worse in separate:
        assert ranges[better].best < ranges[worse].best
        assert ranges[better].worst < ranges[worse].worst
    assert all(1 <= one.best <= one.worst <= one.of == len(names) for one in ranges.values())


@given(tables())
def test_ranges_are_all_places_in_orders_that_no_conclusive_pair_contradicts(table: tuple[Separate, str]) -> None:
    separate, names = table
    places: dict[str, set[int]] = {name: set() for name in names}
    for order in permutations(names):
        if all(order.index(better) < order.index(worse) for better, worse in separate):
            for place, name in enumerate(order, 1):
                places[name].add(place)
    ranges = ranked(separate, names)
    assert places == {name: set(range(one.best, one.worst + 1)) for name, one in ranges.items()}


def test_who_is_better_than_a_better_one_is_better_though_their_pair_has_no_interval() -> None:
    hard, own = np.random.default_rng(0).normal(0, 1, (2, 50))
    values = {"a": hard + 1, "b": hard + 0.1 * own, "c": hard - 1}  # a and c differ by the same in every task
    differences = {(a, b): Estimate.over_tasks(values[a] - values[b]) for a, b in combinations(values, 2)}
    pairs = compare_pairs(differences, "sampler")
    assert [pair.conclusion for pair in pairs] == ["+", "0", "+"]
    ranges = rank_ranges({name: float(of.mean()) for name, of in values.items()}, pairs)
    assert [one.span for one in ranges.values()] == ["1", "2", "3"]


@given(st.integers(0, 200))
def test_ranges_of_drawn_accuracies_hold_the_place_by_the_mean(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = {name: random.normal(0.3 * place, 1.0, 12) for place, name in enumerate("abcde")}
    means = {name: float(by_task.mean()) for name, by_task in values.items()}
    differences = {(a, b): Estimate.over_tasks(values[a] - values[b]) for a, b in combinations(values, 2)}
    ranges = rank_ranges(means, compare_pairs(differences, "sampler"))
    for place, name in enumerate(sorted(means, key=lambda name: -means[name]), 1):
        assert ranges[name].best <= place <= ranges[name].worst
