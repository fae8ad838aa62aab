"""Heat maps of heads against encoders: accuracies and losses (SpurAudio, appendix G)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import bounds, percent, typeset
from shotproof.report.figures.svg import element, names_width, picture, row_name, shorten, text, text_width
from shotproof.stats.intervals import Interval

Cells = Mapping[tuple[str, str], Interval]  # by encoder and method

WIDTH, HEIGHT = 62.0, 19.0  # size of a cell
LINE = 12.0  # height of a line of a column's label
LABEL_LENGTH = 26
PALEST, DARKEST = 0.04, 0.45  # opacities: text stays readable on both


def heat_maps(comparison: Comparison) -> list[tuple[str, Markup]]:
    """Draw Acc on each task set, and its loss against the reference, if there are several encoders and methods."""
    if len(comparison.encoders) < 2 or len(comparison.methods) < 2:
        return []
    accuracies: dict[str, dict[tuple[str, str], Interval]] = {}
    losses: dict[str, dict[tuple[str, str], Interval]] = {}
    for row in [*comparison.rows("accuracy", "acc"), *comparison.rows("gap", "acc")]:
        encoder, method = row.classifier
        design = comparison.design_name(row.design)
        maps, name = accuracies, f"Acc (%), {row.tasks}, {design}"
        if row.reference is not None:
            maps, name = losses, f"Loss of Acc (points), {row.reference} - {row.tasks}, {design}"
        maps.setdefault(name, {})[comparison.encoder_names[encoder], method] = row.interval
    order = best_first(*accuracies.values())  # the same in all maps, so that they can be compared
    return [(name, heat_map(cells, name, order)) for name, cells in (accuracies | losses).items()]


def best_first(*maps: Cells) -> list[str]:
    """Sort the methods by their mean over all cells, the highest first."""
    means: dict[str, list[float]] = {}
    for cells in maps:
        for (_, method), interval in cells.items():
            means.setdefault(method, []).append(interval.mean)
    return sorted(means, key=lambda method: -sum(means[method]) / len(means[method]))


def heat_map(cells: Cells, name: str, order: Sequence[str]) -> Markup:
    """Draw one row per method in this order, one column per encoder; the darker a cell, the higher its value."""
    encoders = list(dict.fromkeys(encoder for encoder, _ in cells))
    methods = [method for method in order if any(key[1] == method for key in cells)]
    labels = _column_labels(encoders)
    header = LINE * max(len(lines) for lines in labels) + 6
    low, high = min(cell.mean for cell in cells.values()), max(cell.mean for cell in cells.values())
    left = names_width(methods, LABEL_LENGTH)
    parts = []
    for column, (encoder, lines) in enumerate(zip(encoders, labels, strict=True)):
        style: dict[str, str | float] = {"x": left + WIDTH * (column + 0.5), "text_anchor": "middle", "class_": "name"}
        for line, label in enumerate(lines, start=1):
            parts.append(element("text", label, element("title", encoder), y=LINE * line, **style))
    for row, method in enumerate(methods):
        top = header + HEIGHT * row
        parts.append(row_name(method, LABEL_LENGTH, left - 6, top + 13))
        for column, encoder in enumerate(encoders):
            if (encoder, method) in cells:
                interval = cells[encoder, method]
                share = 0.5 if high == low else (interval.mean - low) / (high - low)
                tooltip = f"{method} on {encoder}: {percent(interval.mean)} {bounds(interval)}"
                parts += _cell(left + WIDTH * column, top, share, percent(interval.mean), tooltip)
    description = f"Heat map of {len(methods)} methods on {len(encoders)} encoders: {name}."
    return picture(left + WIDTH * len(encoders), header + 4 + HEIGHT * len(methods), description, parts)


def _cell(x: float, y: float, share: float, value: str, tooltip: str) -> list[Markup]:
    opacity = PALEST + (DARKEST - PALEST) * share
    box = {"x": x + 1, "y": y + 1, "width": WIDTH - 2, "height": HEIGHT - 2}
    rectangle = element("rect", element("title", tooltip), fill_opacity=f"{opacity:.2f}", class_="heat", **box)
    return [rectangle, text(x + WIDTH / 2, y + 13, typeset(value), "middle", "value")]


def _column_labels(encoders: Sequence[str]) -> list[list[str]]:
    """Label each column with the encoder's name and a line per preprocessing step; with options only if needed."""
    all_steps = [encoder.split(" > ") for encoder in encoders]
    without_options = [[step.partition("(")[0] for step in steps] for steps in all_steps]
    labels = [
        short if without_options.count(short) == 1 else full
        for short, full in zip(without_options, all_steps, strict=True)
    ]
    length = int(WIDTH // text_width("x"))
    return [[shorten(f"> {step}" if line else step, length) for line, step in enumerate(steps)] for steps in labels]
