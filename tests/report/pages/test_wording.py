from __future__ import annotations

import math

import pytest

from shotproof.report.pages.wording import metric, p_value, typeset


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
    assert metric("wAcc", label) == name
