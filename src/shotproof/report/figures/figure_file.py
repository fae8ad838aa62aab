"""A figure as a file of its own: an SVG that carries its style and its title."""

from __future__ import annotations

import re
from pathlib import Path

from markupsafe import Markup

from shotproof.core.storage.whole_files import write_text
from shotproof.report.figures.svg import element, text

STYLE = Path(__file__).parents[1] / "pages" / "templates" / "page.css"
TITLE_HEIGHT = 20
MARGIN = 8
ENLARGED = 1.5  # where the file is shown as an image, of the page's smallest size

_OPENING = re.compile(r'<svg viewBox="0 0 (\S+) (\S+)"([^>]*)>')


def write_svg(path: Path, figure: Markup, title: str) -> None:
    """Write a figure below its title."""
    opening = _OPENING.match(figure)
    assert opening, "a figure by svg.picture"
    width, height = float(opening[1]), float(opening[2])
    parts = [
        element("style", Markup(STYLE.read_text(encoding="utf-8"))),
        text(0, TITLE_HEIGHT - 9, title, class_="axis-label"),
        element("g", Markup(figure[opening.end() :].removesuffix("</svg>")), transform=f"translate(0 {TITLE_HEIGHT})"),
    ]
    across, down = width + 2 * MARGIN, TITLE_HEIGHT + height + 2 * MARGIN
    size = f'viewBox="{-MARGIN} {-MARGIN} {across:g} {down:g}" width="{ENLARGED * across:g}"'
    # Opened by itself, a transparent figure would be on the viewer's own color, which may be that of its text.
    ground = 'style="background: var(--paper)"'
    inner = "".join(parts)
    write_text(path, f'<svg xmlns="http://www.w3.org/2000/svg" {size} {ground}{opening[3]}>{inner}</svg>\n')
