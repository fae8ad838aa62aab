"""The file of the pins: what it says, and how new calls get into it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.pinned.counts import COUNTS, count
from tests.pinned.draws import DRAWS, draw, pin_of

PINS = Path(__file__).parents[1] / "pinned.json"


@cache
def pins() -> dict[str, dict[str, Any]]:
    """What was pinned: of tasks and counts, the digest of each call."""
    read: dict[str, dict[str, Any]] = json.loads(PINS.read_text(encoding="utf-8"))
    return read


def pin_new() -> None:
    """Add the calls that have no pin yet."""
    known = pins() if PINS.exists() else {}
    tables: dict[str, tuple[list[Any], Callable[[Any], str]]] = {
        "tasks": (DRAWS, lambda call: pin_of(draw(call))),
        "counts": (COUNTS, count),
    }
    made = {
        table: {call.id: known.get(table, {}).get(call.id) or answer(call) for call in calls}
        for table, (calls, answer) in tables.items()
    }
    PINS.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
