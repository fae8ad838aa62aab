"""Length against direction of features, clean and mixed (SpurAudio, Fig. 13), as a figure or a separate page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from shotproof.analysis.context_effect import Change, FeatureChange
from shotproof.comparison.numbers import p_value
from shotproof.core.draws import bits
from shotproof.core.errors import InputError
from shotproof.core.storage.whole_files import write_text
from shotproof.report.figures.svg import COLORS, MARKERS, Box, Scale, element, picture, text, write_svg, x_axis, y_axis
from shotproof.report.pages.render import render
from shotproof.stats.intervals import Interval

WIDTH, HEIGHT = 480, 360
SHOWN = 500  # points of each kind; more would cover each other
SUFFIXES = (".svg", ".html")
SERIES = (("clean", 2, 0), ("mixed", 1, 2))  # name, color, shape
COLUMNS = (
    *("class", "clean", "mixed", "length clean", "length mixed", "ratio", "p"),
    *("cosine clean", "cosine mixed", "change", "p", "to others clean", "to others mixed", "turn"),
)


def geometry_figure(change: FeatureChange) -> Markup:
    """Draw each item's feature: its length on x, its cosine to the class's clean mean on y; large marks are means."""
    frame = Box(52, 26, WIDTH - 10, HEIGHT - 40)
    kinds = {"clean": np.flatnonzero(change.clean), "mixed": np.flatnonzero(~change.clean)}
    drawn = {name: _select(rows) for name, rows in kinds.items()}
    drawn_rows = np.concatenate(list(drawn.values()))
    x_scale = Scale.around(change.length[drawn_rows].tolist(), frame.left, frame.right, least=0.005)
    y_scale = Scale.around(change.cosine[drawn_rows].tolist(), frame.bottom, frame.top, least=0.005)
    parts = x_axis(x_scale, frame, "length of the feature")
    parts += y_axis(y_scale, frame, "cosine to the class’s clean mean")
    for name, color, shape in SERIES:
        for row in drawn[name]:
            x, y = x_scale(change.length[row]), y_scale(change.cosine[row])
            parts.append(_mark(x, y, color, shape, 0.55, change.items[row]))
    overall = change.overall
    left = frame.left
    for name, color, shape in SERIES:
        length, cosine = (getattr(measure, name).mean for measure in (overall.length, overall.cosine))
        tooltip = f"{name}: mean length {length:.4g}, mean cosine {cosine:.3f}"
        parts.append(_mark(x_scale(length), y_scale(cosine), color, shape, 2.2, tooltip))
        label = f"{name}, {len(drawn[name])} of {len(kinds[name]):,}"
        parts += [_mark(left + 5, 12, color, shape, 1, name), text(left + 14, 15.5, label)]
        left += 150
    description = (
        f"Scatter plot of the features of {len(change.items)} items, clean and mixed: length against cosine to the "
        "class's clean mean. The table has the means."
    )
    return picture(WIDTH, HEIGHT, description, parts)


def write_geometry(path: Path, change: FeatureChange, title: str, names: Mapping[str, str] | None = None) -> None:
    """Write the figure as .svg, or as .html with its table; `names` are the names of classes in it."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected a file name that ends in {' or '.join(SUFFIXES)}")
    figure = geometry_figure(change)
    if path.suffix == ".svg":
        write_svg(path, figure, title)
        return
    rows = table_rows([*change.classes, change.overall], names)
    context = {"title": title, "figure": figure, "columns": COLUMNS, "rows": rows, "content": change.to_json()}
    write_text(path, render("geometry_page.html", context))


def table_rows(changes: Sequence[Change], names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Build one row per change with the columns COLUMNS: Tables 7 and 8 side by side; `names` replace class labels."""
    return [
        [
            "all" if change.label is None else (names or {}).get(change.label, change.label),
            f"{change.n_clean:,}",
            f"{change.n_mixed:,}",
            _interval(change.length.clean, 4),
            _interval(change.length.mixed, 4),
            _interval(change.ratio, 3),
            p_value(change.length.p_recordings),
            _interval(change.cosine.clean, 3),
            _interval(change.cosine.mixed, 3),
            _interval(change.cosine.change, 2),
            p_value(change.cosine.p_recordings),
            _interval(change.others.clean if change.others else None, 3),
            _interval(change.others.mixed if change.others else None, 3),
            _interval(change.turn, 3),
        ]
        for change in changes
    ]


def _interval(interval: Interval | None, digits: int) -> str:
    """Write a mean with its half-width, e.g. `12.3 ±0.4`."""
    if interval is None:
        return "-"
    half = "" if interval.refused else f" ±{interval.half_width:.2g}"
    return f"{interval.mean:.{digits}g}{half}"


def _select(rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """Select at most SHOWN of the rows at random."""
    order = np.argsort(bits(0, np.arange(len(rows))), kind="stable")
    return sorted(rows[order[:SHOWN]].tolist())


def _mark(x: float, y: float, color: int, shape: int, size: float, tooltip: str) -> Markup:
    transform = f"translate({x:.1f} {y:.1f}) scale({size:g})"
    return element(
        "path", element("title", tooltip), d=MARKERS[shape], transform=transform, class_=f"mark c{color % COLORS}"
    )
