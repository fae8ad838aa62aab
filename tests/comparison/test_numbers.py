from __future__ import annotations

import math

import pytest

from shotproof.comparison.numbers import bounds, level, listed, metric_symbol, p_value, percent, points, typeset
from shotproof.stats.intervals import Interval


@pytest.mark.parametrize(("value", "text"), [(12.345, "12.3"), (-0.01, "0.0"), (-5.1, "-5.1"), (math.nan, "n/a")])
def test_percent(value: float, text: str) -> None:
    assert percent(value) == text


def test_bounds_that_are_refused_are_not_made_up() -> None:
    assert bounds(Interval(50.0, math.nan, math.nan, refused="one task")) == "[no interval]"
    assert bounds(Interval(50.0, -1.2, 60.0)) == "[-1.2, 60.0]"


@pytest.mark.parametrize(("difference", "text"), [(1.26, "+1.3"), (-0.04, "+0.0"), (-2.0, "-2.0")])
def test_points_have_a_sign_and_no_negative_zero(difference: float, text: str) -> None:
    assert points(difference) == text


def test_levels_are_in_percent() -> None:
    assert [level(share) for share in (0.9, 0.95, 0.999)] == ["90%", "95%", "99.9%"]


@pytest.mark.parametrize(
    ("words", "most", "text"),
    [
        (["a"], None, "a"),
        (["a", "b"], None, "a and b"),
        (["a", "b", "c", "d"], 3, "a, b, c and d"),  # "1 others" would save nothing
        (["a", "b", "c", "d", "e"], 3, "a, b, c and 2 others"),
    ],
)
def test_many_names_are_shortened(words: list[str], most: int | None, text: str) -> None:
    assert listed(words, most) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0421, "0.042"), (1e-4, "0.0001"), (3.2e-7, "3e-07"), (1e-200, "<1e-99"), (0.0, "<1e-99"), (math.nan, "n/a")],
)
def test_a_p_value_is_never_printed_as_zero(value: float, text: str) -> None:
    assert p_value(value) == text


def test_only_hyphens_before_numbers_become_minus_signs() -> None:
    assert typeset("5-way wAcc-R: -1.2 [-3.0, 0.6]") == "5-way wAcc-R: −1.2 [−3.0, 0.6]"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("random", "wAcc-R"),
        ("fewstab", "wAcc-A"),
        ("fewstab [captions]", "wAcc-A [captions]"),
        ("hardest(effort='high')", "wAcc-hardest(effort='high')"),
        ("hard-ood", "wAcc-hard-ood"),
    ],
)
def test_metrics_carry_the_symbol_of_their_tasks(label: str, name: str) -> None:
    assert metric_symbol("wAcc", label) == name
