"""The pages docs/results/reproduction*.md: tables between marks follow from kept results and the papers' figures."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from reproduction.sections import axes, fewstab, hard, oops, sounds

RESULTS = Path(__file__).parents[1] / "docs" / "results"
# A mark stands on a line of its own: in the middle of one, the table below it would be shown as text.
_MARKED = re.compile(r"^(<!-- reproduction:([\w-]+) -->\n).*?^(<!-- /reproduction:\2 -->)$", re.DOTALL | re.MULTILINE)


def all_pages(folder: Path = RESULTS) -> list[Path]:
    """Return the pages that have derived tables, in a fixed order."""
    pages = [*folder.glob("reproduction*.md"), *(folder / "tables").glob("*.md")]
    return sorted(page for page in pages if _MARKED.search(page.read_text(encoding="utf-8")))


@cache
def all_sections() -> dict[str, str]:
    """Return every derived section by its name."""
    return {name: text for part in (fewstab, sounds, oops, hard, axes) for name, text in part.sections().items()}


def fill_sections(text: str) -> str:
    """Return a page with each section between its marks.

    Raises:
        KeyError: the page has marks of an unknown section
    """
    sections = all_sections()
    return _MARKED.sub(lambda match: f"{match[1]}{sections[match[2]]}{match[3]}", text)
