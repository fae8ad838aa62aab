"""Heads against encoders: accuracies, and what is lost of them, as heat maps (SpurAudio, appendix G)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import bounds, percent, typeset
from shotproof.report.figures.svg import element, names_width, picture, row_name, shortened, text, text_width
from shotproof.stats.intervals import Interval

Cells = Mapping[tuple[str, str], Interval]  # by encoder and method

WIDTH, HEIGHT = 62.0, 19.0  # of a cell
LINE = 12.0  # height of a line of a column's label
LABEL_LENGTH = 26
PALEST, DARKEST = 0.04, 0.45  # ink stays readable on either


def heat_maps(comparison: Comparison) -> list[tuple[str, Markup]]:
    """A map of Acc for each task set, and of its loss against the reference; none unless there are several of both."""
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
    order = best_first(*accuracies.values())  # of all maps alike, so that they can be read side by side
    return [(name, heat_map(cells, name, order)) for name, cells in (accuracies | losses).items()]


def best_first(*maps: Cells) -> list[str]:
    """Return the methods, the highest mean over all cells first."""
    means: dict[str, list[float]] = {}
    for cells in maps:
        for (_, method), one in cells.items():
            means.setdefault(method, []).append(one.mean)
    return sorted(means, key=lambda method: -sum(means[method]) / len(means[method]))


def heat_map(cells: Cells, name: str, order: Sequence[str]) -> Markup:
    """One row per method, in the order given, one column per encoder; the darker a cell, the higher its value."""
    encoders = list(dict.fromkeys(encoder for encoder, _ in cells))
    methods = [method for method in order if any(key[1] == method for key in cells)]
    labels = _column_labels(encoders)
    header = LINE * max(len(lines) for lines in labels) + 6
    low, high = min(cell.mean for cell in cells.values()), max(cell.mean for cell in cells.values())
    left = names_width(methods, LABEL_LENGTH)
    parts = []
    for column, (encoder, lines) in enumerate(zip(encoders, labels, strict=True)):
        place: dict[str, str | float] = {"x": left + WIDTH * (column + 0.5), "text_anchor": "middle", "class_": "name"}
        for line, label in enumerate(lines, start=1):
            parts.append(element("text", label, element("title", encoder), y=LINE * line, **place))
    for row, method in enumerate(methods):
        top = header + HEIGHT * row
        parts.append(row_name(method, LABEL_LENGTH, left - 6, top + 13))
        for column, encoder in enumerate(encoders):
            if (encoder, method) in cells:
                one = cells[encoder, method]
                share = 0.5 if high == low else (one.mean - low) / (high - low)
                told = f"{method} on {encoder}: {percent(one.mean)} {bounds(one)}"
                parts += _cell(left + WIDTH * column, top, share, percent(one.mean), told)
    description = f"Heat map of {len(methods)} methods on {len(encoders)} encoders: {name}."
    return picture(left + WIDTH * len(encoders), header + 4 + HEIGHT * len(methods), description, parts)


def _cell(x: float, y: float, share: float, value: str, told: str) -> list[Markup]:
    opacity = PALEST + (DARKEST - PALEST) * share
    box = {"x": x + 1, "y": y + 1, "width": WIDTH - 2, "height": HEIGHT - 2}
    rectangle = element("rect", element("title", told), fill_opacity=f"{opacity:.2f}", class_="heat", **box)
    return [rectangle, text(x + WIDTH / 2, y + 13, typeset(value), "middle", "value")]


def _column_labels(encoders: Sequence[str]) -> list[list[str]]:
    """An encoder's name on a line, each step of preprocessing on one below; options where they tell columns apart."""
    steps = [encoder.split(" > ") for encoder in encoders]
    plain = [[step.partition("(")[0] for step in each] for each in steps]
    chosen = [short if plain.count(short) == 1 else full for short, full in zip(plain, steps, strict=True)]
    most = int(WIDTH // text_width("x"))
    return [[shortened(f"> {step}" if line else step, most) for line, step in enumerate(each)] for each in chosen]
