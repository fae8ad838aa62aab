from __future__ import annotations

import pytest

from shotproof.results.applied_change import AppliedChange
from shotproof.results.origin import Origin
from tests.drawn_results import draw_results, draw_tasks


@pytest.mark.parametrize(
    ("change", "name", "severity", "rest"),
    [
        ("blur", "blur", 3, "blur"),
        ("blur(severity=5)", "blur", 5, "blur"),
        ("mixed-rival", "mixed-rival", None, "mixed-rival"),
        ("mixed-rival(seed=2)", "mixed-rival", None, "mixed-rival(seed=2)"),
        ("of-a-later-version(severity=2)", "of-a-later-version", None, "of-a-later-version"),
        ("not ( a call", "not ( a call", None, "not ( a call"),
    ],
)
def test_the_severity_stands_apart_from_the_change(change: str, name: str, severity: int | None, rest: str) -> None:
    applied = AppliedChange(change)
    assert (applied.name, applied.severity, applied.without_severity) == (name, severity, rest)


def test_only_equally_pasted_sets_show_what_the_background_alone_does() -> None:
    pasted = AppliedChange("mixed-same")
    assert AppliedChange("mixed-rival").swaps_background(pasted)
    assert AppliedChange("mixed-random(seed=1)").swaps_background(pasted)
    assert not AppliedChange("mixed-rival").swaps_background(None)  # the loss includes that of cutting and pasting
    assert not AppliedChange("mixed-rival").swaps_background(AppliedChange("only-foreground"))
    assert not AppliedChange("only-foreground").swaps_background(pasted)


def test_a_swap_is_on_the_side_that_was_pasted_before() -> None:
    for side in ("query", "support", "both"):
        for other in ("query", "support", "both"):
            swapped, pasted = AppliedChange("mixed-rival", side), AppliedChange("mixed-same", other)
            assert swapped.swaps_background(pasted) == (side == other)


def test_a_swap_is_as_loud_as_the_reference() -> None:
    for change in ("mixed-rival(margin_db=0)", "mixed-random(margin_db=0, seed=3)"):
        assert not AppliedChange(change).swaps_background(AppliedChange("mixed-same"))
        assert not AppliedChange(change).swaps_background(AppliedChange("mixed-same(margin_db=3)"))
        assert AppliedChange(change).swaps_background(AppliedChange("mixed-same(margin_db=0.0, seed=1)"))
    assert AppliedChange("mixed-rival(margin_db=None)").swaps_background(AppliedChange("mixed-same"))
    later = AppliedChange("mixed-rival(later_option=1)")
    assert not later.swaps_background(AppliedChange("mixed-same(later_option=2)"))
    assert later.swaps_background(AppliedChange("mixed-same(later_option=1, seed=2)"))


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        ("changed(change='blur(severity=5)', side='both')", AppliedChange("blur(severity=5)", "both")),
        ("changed(side='support')", AppliedChange("blur", "support")),
        ("changed(change='mixed-rival')", AppliedChange("mixed-rival")),
        ("random", None),
        ("fewstab", None),
    ],
)
def test_it_is_read_from_the_record_of_the_results(sampler: str, expected: AppliedChange | None) -> None:
    origin = Origin.of(draw_results(draw_tasks(sampler), {"ncc": 0.5}))
    assert AppliedChange.of(origin) == expected
