"""What methods lose on several axes, and whether one order holds on all."""

from __future__ import annotations

import math

import pytest
from reproduction.sections.axes import axis_table, rank_table
from reproduction.sections.fewstab import rank_text

from shotproof.stats.intervals import Estimate

LOST = {
    name: {axis: Estimate.over_tasks([lost - 1, lost + 1]) for axis, lost in zip("ab", pair, strict=True)}
    for name, pair in {"one": (1, 2), "two": (2, 1), "three": (3, 3), "four": (4, 4), "five": (5, 5)}.items()
}


def test_a_cell_that_was_not_run_is_said() -> None:
    first = axis_table(LOST, ["a", "b", "c"]).splitlines()[2]
    assert first.startswith("| one | 1.00 ±")
    assert first.endswith("| not run yet |")
    assert axis_table({}, ["a"]).splitlines()[2] == "| not run yet |  |"


def test_a_correlation_has_an_interval_over_methods() -> None:
    (row,) = rank_table(LOST, ["a", "b"]).splitlines()[2:]
    half = 1.959964 * math.sqrt((1 + 0.9**2 / 2) / 2)
    low, high = math.tanh(math.atanh(0.9) - half), math.tanh(math.atanh(0.9) + half)
    assert row == f"| a and b | 0.90 [{low:.2f}, {high:.2f}] over 5 methods |".replace("[-", "[−")


@pytest.mark.parametrize("pairs", [[(1, 1), (2, 2), (3, 3), (4, 4)], [(1, 2), (2, 1), (3, 3)]])
def test_where_it_has_none_none_is_told(pairs: list[tuple[float, float]]) -> None:
    assert "[" not in rank_text(pairs)
