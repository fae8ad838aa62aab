from __future__ import annotations

import math

import pytest

from shotproof.comparison.numbers import bounds, level, listed, percent, points
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
