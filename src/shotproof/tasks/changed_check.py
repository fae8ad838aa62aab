"""Check of tasks with changed items against the definition of their change, written with plain sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from shotproof.changes.change import BackgroundChange, Change, changes
from shotproof.core.errors import InputError

SAMPLER = "changed"
_SIDES = {"query": ("query",), "support": ("support",), "both": ("support", "query")}


def check_changes(
    task: list[dict[str, Any]],
    options: Mapping[str, Any],
    labels: Mapping[str, str],
    sources: Mapping[str, str | None],
) -> Iterator[tuple[str, str]]:
    """Yield the class and the reason for each item of a task that is not changed as the options say.

    The recorded side has the recorded change, and the other side none. A background is that of another item of the
    class (`mixed-same`), of another class of the task (`mixed-rival`), or of any other item (`mixed-random`).

    Args:
        task: rows of one task
        options: options of the sampler
        labels, sources: class and source of each item of the catalog
    """
    expected, sides = _read(str(options.get("change", ""))), _SIDES.get(str(options.get("side", "query")), ())
    classes = {row["label"] for row in task}
    for row in task:
        for side in ("support", "query"):
            spellings = row.get(f"{side}_change")
            if (spellings is not None) != (side in sides):
                yield row["label"], f"the {side} items are {'not ' if side in sides else ''}changed"
            elif spellings is not None:
                yield from _check_side(row, side, expected, classes, labels, sources)


def _check_side(
    row: Mapping[str, Any],
    side: str,
    expected: Change | None,
    classes: set[str],
    labels: Mapping[str, str],
    sources: Mapping[str, str | None],
) -> Iterator[tuple[str, str]]:
    """Yield the reason for each item of one side that is not changed as expected."""
    for item, spelling in zip(row[side], row[f"{side}_change"], strict=True):
        reason = _reason(item, row["label"], _read(spelling), expected, classes, labels, sources)
        if reason:
            yield row["label"], f"{side} item '{item}' {reason}"


def _reason(
    item: str,
    label: str,
    change: Change | None,
    expected: Change | None,
    classes: set[str],
    labels: Mapping[str, str],
    sources: Mapping[str, str | None],
) -> str | None:
    """Return why an item is not changed as expected; None if it is."""
    plate = change.plate if isinstance(change, BackgroundChange) else None
    plain = replace(change, plate=None) if isinstance(change, BackgroundChange) else change
    if plain is None or plain != expected:
        return f"has the change '{change or 'none'}' instead of '{expected}'"
    shown = change.plates if isinstance(change, BackgroundChange) else None
    if shown is None:
        return None if plate is None else f"shows the background of '{plate}'"
    if plate is None or plate not in labels:
        return f"shows the background of '{plate}', which is not in the catalog"
    if plate == item or (sources.get(item) is not None and sources.get(item) == sources.get(plate)):
        return "shows its own background"
    allowed = {"same": {label}, "rival": classes - {label}}.get(shown)
    if allowed is not None and labels[plate] not in allowed:
        return f"shows the background of '{plate}', of class '{labels[plate]}'"
    return None


@lru_cache(maxsize=65536)
def _read(spelling: str) -> Change | None:
    """Return a change; None for an item without one, or for a change that is unknown here."""
    try:
        return changes.make(spelling) if spelling else None
    except InputError:
        return None
