"""What the labels of changed task sets say: `blur(severity=5)`, or `mixed-rival on both sides`.

The background is judged by a swap: items on the background of another class, or of any item, against the same tasks
with items on the background of another item of their class. Both are cut and pasted alike, so that traces cancel out.
"""

from __future__ import annotations

import re

from shotproof.changes.change import changes
from shotproof.core.errors import InputError

SWAPS = ("mixed-rival", "mixed-random")  # the first is preferred, as it shows the background of a wrong answer
PASTED = "mixed-same"
BACKGROUND_ALONE = "only-background"


def change_of(label: str) -> str:
    """Return the name of the change.

    Example:
        >>> change_of("blur(severity=5) on both sides")
        'blur'
    """
    return re.split(r"[( ]", label, maxsplit=1)[0]


def swaps_background(label: str, reference: str | None) -> bool:
    """Return whether only the background differs between two task sets, so that a loss is reliance on it."""
    return reference is not None and change_of(label) in SWAPS and change_of(reference) == PASTED


def is_background_alone(label: str) -> bool:
    """Return whether items are shown without their foreground: accuracy there comes from the background, none is due.

    Example:
        >>> is_background_alone("only-background"), is_background_alone("only-foreground")
        (True, False)
    """
    return change_of(label) == BACKGROUND_ALONE


def severity_of(label: str) -> int | None:
    """Return the severity of a change; None if it has none, or if the change is unknown here.

    Example:
        >>> severity_of("blur(severity=5)"), severity_of("blur on both sides"), severity_of("mixed-rival")
        (5, 3, None)
    """
    spelling = re.match(r"[\w-]+(\([^)]*\))?", label)
    try:
        change = changes.make(spelling[0] if spelling else label)
    except InputError:  # of another version
        return None
    severity: int | None = getattr(change, "severity", None)
    return severity


def without_severity(label: str) -> str:
    """Return the label without the severity, which tables show beside it.

    Example:
        >>> without_severity("blur(severity=5) on both sides")
        'blur on both sides'
    """
    label = re.sub(r"severity=\d(, )?", "", label)
    return label.replace("()", "").replace(", )", ")")
