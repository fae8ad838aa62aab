"""Length against direction of features, clean and mixed (SpurAudio, Fig. 13), as a figure or a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from shotproof.draws import bits
from shotproof.errors import InputError
from shotproof.geometry.change import Change, FeatureChange
from shotproof.report.figure_file import STYLE, write_svg
from shotproof.report.svg import COLOURS, MARKERS, Box, Scale, element, line, picture, text
from shotproof.report.wording import typeset
from shotproof.stats.intervals import Interval
from shotproof.tables import write_text

WIDTH, HEIGHT = 480, 360
SHOWN = 500  # points of each kind; more would hide each other
SUFFIXES = (".svg", ".html")
SERIES = (("clean", 2, 0), ("mixed", 1, 2))  # name, colour, shape
COLUMNS = (
    *("class", "clean", "mixed", "length clean", "length mixed", "ratio", "p"),
    *("cosine clean", "cosine mixed", "change", "p", "to others clean", "to others mixed", "turn"),
)


def geometry_figure(found: FeatureChange) -> Markup:
    """Every item's feature: its length across, its cosine to the class's clean mean up; the means in large."""
    frame = Box(52, 26, WIDTH - 10, HEIGHT - 40)
    kinds = {"clean": np.flatnonzero(found.clean), "mixed": np.flatnonzero(~found.clean)}
    drawn = {name: _some(rows) for name, rows in kinds.items()}
    shown = np.concatenate(list(drawn.values()))
    across = Scale.around(found.length[shown].tolist(), frame.left, frame.right)
    up = Scale.around(found.cosine[shown].tolist(), frame.bottom, frame.top)
    parts = _axes(across, up, frame)
    for name, colour, shape in SERIES:
        for row in drawn[name]:
            parts.append(_mark(across(found.length[row]), up(found.cosine[row]), colour, shape, 0.55, found.items[row]))
    overall = found.overall
    left = frame.left
    for name, colour, shape in SERIES:
        length, cosine = (getattr(measured, name).mean for measured in (overall.length, overall.cosine))
        told = f"{name}: mean length {length:.4g}, mean cosine {cosine:.3f}"
        parts.append(_mark(across(length), up(cosine), colour, shape, 2.2, told))
        label = f"{name}, {len(drawn[name])} of {len(kinds[name]):,}"
        parts += [_mark(left + 5, 12, colour, shape, 1, name), text(left + 14, 15.5, label)]
        left += 150
    described = (
        f"Scatter plot of the features of {len(found.items)} items, clean and mixed: length against cosine to the "
        "class's clean mean. The table has the means."
    )
    return picture(WIDTH, HEIGHT, described, parts)


def write_geometry(path: Path, found: FeatureChange, title: str) -> None:
    """Write the figure as .svg, or as .html with its table."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in {' or '.join(SUFFIXES)}")
    figure = geometry_figure(found)
    if path.suffix == ".svg":
        write_svg(path, figure, title)
        return
    style = Markup(STYLE.read_text(encoding="utf-8"))
    heading = element("h1", title)
    table = element("div", _table(found), class_="scroll")
    body = element("main", heading, element("figure", element("div", figure, class_="panel")), table)
    head = Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">')
    page = element("html", element("head", head, element("title", title), element("style", style)), body, lang="en")
    write_text(path, f"<!doctype html>\n{page}\n")


def table_rows(changes: Sequence[Change]) -> list[list[str]]:
    """A row a change, as COLUMNS has it: Tables 7 and 8 side by side."""
    return [
        [
            "all" if one.label is None else one.label,
            f"{one.n_clean:,}",
            f"{one.n_mixed:,}",
            _interval(one.length.clean, 4),
            _interval(one.length.mixed, 4),
            _interval(one.ratio, 3),
            _p_value(one.length.p_recordings),
            _interval(one.cosine.clean, 3),
            _interval(one.cosine.mixed, 3),
            _interval(one.cosine.change, 2),
            _p_value(one.cosine.p_recordings),
            _interval(one.others.clean if one.others else None, 3),
            _interval(one.others.mixed if one.others else None, 3),
            _interval(one.turn, 3),
        ]
        for one in changes
    ]


def _table(found: FeatureChange) -> Markup:
    def cell(content: str, number: int, tag: str) -> Markup:
        return element(tag, typeset(content), class_="number" if number else "name")

    head = element("tr", *(cell(name, number, "th") for number, name in enumerate(COLUMNS)))
    rows = [
        element("tr", *(cell(content, number, "td") for number, content in enumerate(row)))
        for row in table_rows([*found.classes, found.overall])
    ]
    return element("table", element("thead", head), element("tbody", *rows))


def _interval(interval: Interval | None, digits: int) -> str:
    """A mean with its half-width, e.g. `12.3 ±0.4`."""
    if interval is None:
        return "-"
    half = "" if interval.refused else f" ±{interval.half_width:.2g}"
    return f"{interval.mean:.{digits}g}{half}"


def _p_value(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}"


def _some(rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """At most SHOWN of the rows, drawn evenly."""
    order = np.argsort(bits(0, np.arange(len(rows))), kind="stable")
    return sorted(rows[order[:SHOWN]].tolist())


def _axes(across: Scale, up: Scale, frame: Box) -> list[Markup]:
    parts = []
    for value in across.ticks():
        x = across(value)
        parts += [line(x, frame.top, x, frame.bottom, "grid"), text(x, frame.bottom + 14, f"{value:g}", "middle")]
    for value in up.ticks():
        y = up(value)
        label = typeset(f"{round(value, 6):g}")
        parts += [line(frame.left, y, frame.right, y, "grid"), text(frame.left - 6, y + 3.5, label, "end")]
    middle_x, middle_y = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
    parts.append(text(middle_x, frame.bottom + 31, "length of the feature", "middle", "axis-label"))
    turned = f"rotate(-90 10 {middle_y:g})"
    label = "cosine to the class’s clean mean"
    parts.append(element("text", label, x=10, y=middle_y, transform=turned, text_anchor="middle", class_="axis-label"))
    return parts


def _mark(x: float, y: float, colour: int, shape: int, size: float, tooltip: str) -> Markup:
    place = f"translate({x:.1f} {y:.1f}) scale({size:g})"
    return element(
        "path", element("title", tooltip), d=MARKERS[shape], transform=place, class_=f"mark c{colour % COLOURS}"
    )
