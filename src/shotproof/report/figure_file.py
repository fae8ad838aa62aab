"""A figure as a file of its own: an SVG that carries its style, its title and the names of its series."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from shotproof.report.svg import element, text, text_width
from shotproof.tables import write_text

STYLE = Path(__file__).parent / "page.css"
ROW = 15  # a line of the title or of the legend
MARGIN = 8
ENLARGED = 1.5  # where the file is shown as an image, of the page's smallest size

_OPENING = re.compile(r'<svg viewBox="0 0 (\S+) (\S+)"([^>]*)>')


def write_svg(path: Path, figure: Markup, title: str = "", keys: Sequence[tuple[Markup, str]] = ()) -> None:
    """Write a figure; `keys` are the mark and the name of each series."""
    opening = _OPENING.match(figure)
    assert opening, "a figure by svg.picture"
    width, height = float(opening[1]), float(opening[2])
    top = ROW + 5 if title else 0
    legend, rows = _legend(keys, width, top + height + ROW)
    parts = [
        element("style", Markup(STYLE.read_text(encoding="utf-8"))),
        text(0, ROW - 4, title, class_="axis-label"),
        element("g", Markup(figure[opening.end() :].removesuffix("</svg>")), transform=f"translate(0 {top})"),
        *legend,
    ]
    across, down = width + 2 * MARGIN, top + height + rows * ROW + 2 * MARGIN
    size = f'viewBox="{-MARGIN} {-MARGIN} {across:g} {down:g}" width="{ENLARGED * across:g}"'
    # Opened by itself, a transparent figure would be on the viewer's own colour, which may be that of its text.
    ground = 'style="background: var(--paper)"'
    inner = "".join(parts)
    write_text(path, f'<svg xmlns="http://www.w3.org/2000/svg" {size} {ground}{opening[3]}>{inner}</svg>\n')


def _legend(keys: Sequence[tuple[Markup, str]], width: float, top: float) -> tuple[list[Markup], int]:
    """The marks with their names, wrapped to the width, from a first baseline on; and the number of rows."""
    parts: list[Markup] = []
    left, row = 0.0, 0
    for mark, name in keys:
        needed = 26 + text_width(name)
        if left > 0 and left + needed > width:
            left, row = 0.0, row + 1
        y = top + row * ROW
        parts += [element("g", mark, transform=f"translate({left:g} {y - 8.5:g})"), text(left + 13, y, name)]
        left += needed
    return parts, row + 1 if keys else 0
