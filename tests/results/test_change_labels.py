from __future__ import annotations

import pytest

from shotproof.results.change_labels import severity_of, swaps_background, without_severity


@pytest.mark.parametrize(
    ("label", "severity", "rest"),
    [
        ("blur", 3, "blur"),
        ("blur(severity=5)", 5, "blur"),
        ("blur(severity=0) on both sides", 0, "blur on both sides"),
        ("mixed-rival", None, "mixed-rival"),
        ("mixed-rival(seed=2)", None, "mixed-rival(seed=2)"),
        ("of-a-later-version(severity=2)", None, "of-a-later-version"),
    ],
)
def test_the_severity_stands_apart_from_the_change(label: str, severity: int | None, rest: str) -> None:
    assert severity_of(label) == severity
    assert without_severity(label) == rest


def test_only_equally_pasted_sets_show_what_the_background_alone_does() -> None:
    assert swaps_background("mixed-rival", "mixed-same")
    assert swaps_background("mixed-random(seed=1)", "mixed-same")
    assert not swaps_background("mixed-rival", "random")  # the loss includes that of cutting and pasting
    assert not swaps_background("only-foreground", "mixed-same")
    assert not swaps_background("mixed-rival", None)
