"""docs/results/reproduction.md: what stands between its marks is derived from results and from the papers' figures."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from reproduction.sections import axes, fewstab, hard, oops, sounds

DOCUMENT = Path(__file__).parents[1] / "docs" / "results" / "reproduction.md"
_MARKED = re.compile(r"(<!-- reproduction:([\w-]+) -->\n).*?(<!-- /reproduction:\2 -->)", re.DOTALL)


@cache
def all_sections() -> dict[str, str]:
    """Every derived section by its name."""
    return {name: text for part in (fewstab, sounds, oops, hard, axes) for name, text in part.sections().items()}


def derived(text: str) -> str:
    """The document with each section between its marks.

    Raises:
        KeyError: it has marks of a section that there is not.
    """
    found = all_sections()
    return _MARKED.sub(lambda match: f"{match[1]}{found[match[2]]}{match[3]}", text)
