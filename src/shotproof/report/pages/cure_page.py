"""Page of a cure: what helps, what it costs, how to apply it, and what to collect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shotproof.core.storage.whole_files import write_text
from shotproof.cures.cure import Cure
from shotproof.cures.cure_sentences import apply_lines, cure_sentences
from shotproof.report.pages.render import render

CURE_PAGE = "cure.html"


def cure_part(cure: Cure) -> dict[str, Any]:
    """Return what the section on a cure shows."""
    axes = list(dict.fromkeys(effect.axis for row in cure.tried for effect in row.effects))
    rows = [
        {"row": row, "effects": {effect.axis: effect for effect in row.effects}, "apply": apply_lines(cure, row)}
        for row in cure.tried
    ]
    best = cure.row(cure.recommended)
    return {
        "cure": cure,
        "axes": axes,
        "rows": rows,
        "sentences": cure_sentences(cure),
        "apply": [] if best is None else apply_lines(cure, best),
    }


def write_cure_page(path: Path, cure: Cure) -> None:
    """Write the page of a cure."""
    context = {
        "title": f"What to do about {cure.method} on {cure.encoder}?",
        "medium": cure.medium,
        "cured": cure_part(cure),
        "content": cure.to_json(),
    }
    write_text(path, render("cure_page.html", context))
