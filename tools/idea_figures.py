"""The figures of the first page and of the pages under Ideas: `python -m tools.idea_figures` writes them anew.

Numbers are those of a card, of which the accuracies on single tasks are left out, and of the table of birds in
docs/how-to/compare.md. The card is of these two commands:

    shotproof demo
    shotproof profile shotproof-demo/world/catalog.parquet -o animals-profile \
        --model shotproof-demo/everywhere.model --method cosine --query 5
"""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from markupsafe import Markup
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import Card
from shotproof.comparison.numbers import bounds, percent, typeset
from shotproof.report.figures.card_figure import PHONE_PANEL, axes_figure
from shotproof.report.figures.svg import Box, Scale, element, line, marker, picture, text, write_svg, x_axis
from shotproof.worlds.scenes import ScenesWorld

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "figures"
CARD = FOLDER / "animals-card.json"
TABLE = DOCS / "how-to" / "compare.md"

WIDTH = 380.0  # the text of a figure as wide as a phone is as large as that of its page's notes

# Task 0 of the demo's hard-ood tasks, and what the network `at-home` answered.
SUPPORTS = {
    label: tuple(f"{label}/{place}/{number:04d}" for number in numbers)
    for label, place, numbers in (("duck", "forest", (8, 19, 9, 18, 15)), ("giraffe", "city", (0, 8, 21, 6, 12)))
}
QUERY, ANSWER = "duck/city/0004", "giraffe"
TILE, TILE_PIXELS = 52.0, 72
COLORS = 48  # of a tile: a drawing has few

INTERVALS = {
    "sampler": "other tasks, same images",
    "depletion": "other tasks that share no image",
    "images": "other images, same classes",
    "classes": "other classes",
}
METHOD = "cosine"


def write_figures(folder: Path = FOLDER) -> list[Path]:
    """Write all figures; the same bytes from the same numbers, but for the compression of the tiles."""
    card = Card.read(CARD)
    title = f"{card.title}, {card.name}"
    figures = {
        "card": (title, axes_figure(card)),
        "card-phone": (title, axes_figure(card, PHONE_PANEL)),
        "shortcut": ("A task of shotproof demo: two of its five animals, one of its queries", shortcut()),
        "gap": ("What a network loses on FewSTAB tasks, in worst-class accuracy", gap(card)),
        "intervals": (f"{METHOD} on birds, 600 random tasks: the same accuracy, four 95% intervals", intervals()),
    }
    paths = []
    for name, (alt, figure) in figures.items():
        write_svg(folder / f"{name}.svg", figure, alt)
        paths.append(folder / f"{name}.svg")
    return paths


def shortcut() -> Markup:
    """Draw two classes of a task with their supports, a query set in the other class's place, and the answer."""
    tiles = draw_tiles([*SUPPORTS["duck"], *SUPPORTS["giraffe"], QUERY])
    left, step, parts, y = 60.0, TILE + 6, [], 0.0
    parts.append(text(0, 12, "Shown with their names (the support):"))
    for row, (label, items) in enumerate(SUPPORTS.items()):
        y = 20 + row * (TILE + 8)
        parts.append(text(left - 8, y + TILE / 2 + 4, label, "end", "axis-label"))
        parts += [_tile(tiles[item], left + place * step, y, TILE) for place, item in enumerate(items)]
    y += TILE + 22
    parts += [
        text(0, y, "Asked (a query):"),
        _tile(tiles[QUERY], left, y + 8, 1.6 * TILE),
        text(left + 1.6 * TILE + 14, y + 40, f"The network says: {ANSWER}.", class_="axis-label"),
        text(left + 1.6 * TILE + 14, y + 56, "That was shown in the city."),
    ]
    description = (
        "Five pictures of ducks, all in a forest, and five of giraffes, all in a city. "
        "A duck in a city is called a giraffe."
    )
    return picture(WIDTH, y + 8 + 1.6 * TILE, description, parts)


def draw_tiles(items: list[str]) -> dict[str, bytes]:
    """Draw pictures of the demo's world as small PNG files."""
    world = ScenesWorld(items=24)
    catalog = world.catalog()
    tiles = Catalog(catalog.table.take(catalog.rows_of(pa.array(items), "tiles")), catalog.root, catalog.record)
    return {item: _png(image) for item, image in zip(items, world.draw_pictures(tiles), strict=True)}


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    small = image.resize((TILE_PIXELS, TILE_PIXELS), Image.Resampling.BOX).quantize(COLORS)
    small.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _tile(png: bytes, x: float, y: float, side: float) -> Markup:
    data = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return element("image", href=data, x=x, y=y, width=side, height=side)


def gap(card: Card) -> Markup:
    """Draw reference, placebo and stress on one scale; below them the gap, the part beyond the placebo, and skill."""
    axis = next(axis for axis in card.axes if axis.name == "fewstab")
    before, now = (axis.estimates[name]["wacc"] for name in ("reference_accuracy", "accuracy"))
    lost, of_placebo, beyond = (axis.estimates[name]["wacc"] for name in ("gap", "placebo", "excess"))
    chance, shuffled = axis.chance["wacc"], before.mean - of_placebo.mean
    share = axis.estimates["skill_lost"]["wacc"]
    left, top, step = 92.0, 22.0, 24.0
    frame = Box(left, top, WIDTH - 10, top + 3 * step)
    scale = Scale(0, 50, frame.left, frame.right)
    parts = [
        *x_axis(scale, frame, "worst-class accuracy (%)"),
        line(scale(chance), top, scale(chance), top + 3 * step, "reference"),
        text(scale(chance), top - 6, f"chance {percent(chance)}", "middle"),
    ]
    rows = [
        ("random tasks", before.mean, before, 6),
        ("placebo", shuffled, None, 2),
        ("FewSTAB tasks", now.mean, now, 0),
    ]
    for number, (name, mean, interval, series) in enumerate(rows):
        y = top + step * (number + 0.5)
        parts.append(text(left - 6, y + 3.5, name, "end", "name"))
        if interval is not None:
            parts.append(line(scale(interval.low), y, scale(interval.high), y, f"whisker strong c{series}"))
        parts.append(marker(scale(mean), y, series))
        parts.append(text(scale(mean), y - 7, percent(mean), "middle", "value"))
    below = frame.bottom + 58
    brackets = [
        (now.mean, before.mean, f"gap {percent(lost.mean)} {bounds(lost)}", 6),
        (shuffled, before.mean, f"the placebo's gap {percent(of_placebo.mean)} {bounds(of_placebo)}", 2),
        (now.mean, shuffled, f"beyond the placebo {percent(beyond.mean)} {bounds(beyond)}", 0),
        (chance, before.mean, f"skill {percent(before.mean - chance)}", 6),
    ]
    for number, (low, high, label, series) in enumerate(brackets):
        parts += _bracket(scale(low), scale(high), below + 30 * number, label, series)
    last = below + 30 * len(brackets)
    skill = percent(before.mean - chance)
    result = f"skill lost = {percent(beyond.mean)} / {skill} = {percent(share.mean)}% {bounds(share)}"
    parts.append(text(WIDTH / 2, last, result, "middle", "axis-label"))
    description = f"From {percent(before.mean)}% on random tasks to {percent(now.mean)}% on FewSTAB tasks. {result}."
    return picture(WIDTH, last + 6, description, parts)


def _bracket(low: float, high: float, y: float, label: str, series: int) -> list[Markup]:
    ends = [line(x, y - 4, x, y + 4, f"whisker strong c{series}") for x in (low, high)]
    middle = max(min((low + high) / 2, WIDTH - 10 - 2.9 * len(label)), 2.9 * len(label))
    return [
        line(low, y, high, y, f"whisker strong c{series}"),
        *ends,
        text(middle, y - 7, typeset(label), "middle", "value"),
    ]


@dataclass(frozen=True)
class Row:
    """Row of a method in the table of birds."""

    mean: float
    intervals: dict[str, tuple[float, float]]


def birds_row(method: str) -> Row:
    """Read the accuracy and intervals of a method from the first table of docs/how-to/compare.md."""
    table = TABLE.read_text(encoding="utf-8").partition("Every number;")[2]
    match = re.search(rf"^random +{method} +\d+ +([\d.]+) +(.+)$", table, re.MULTILINE)
    assert match, f"a row of {method} in {TABLE.name}"
    pairs = re.findall(r"\[([\d.]+), ([\d.]+)\]", match[2])
    return Row(float(match[1]), {name: (float(a), float(b)) for name, (a, b) in zip(INTERVALS, pairs, strict=True)})


def intervals() -> Markup:
    """Draw the four intervals of one method, one below the other."""
    row = birds_row(METHOD)
    left, top, step = 170.0, 6.0, 30.0
    frame = Box(left, top, WIDTH - 14, top + step * len(INTERVALS))
    scale = Scale(82, 89, frame.left, frame.right)
    parts = x_axis(scale, frame, "accuracy (%)", range(82, 90))
    parts.append(line(scale(row.mean), frame.top, scale(row.mean), frame.bottom, "reference"))
    for number, (name, covers) in enumerate(INTERVALS.items()):
        y = top + step * (number + 0.5)
        low, high = row.intervals[name]
        parts += [
            text(left - 8, y - 1, name, "end", "name"),
            text(left - 8, y + 11, covers, "end"),
            line(scale(low), y + 2, scale(high), y + 2, f"whisker strong c{number}"),
            *(line(scale(end), y - 3, scale(end), y + 7, f"whisker strong c{number}") for end in (low, high)),
            text((scale(low) + scale(high)) / 2, y - 5, f"{low:.1f} to {high:.1f}", "middle", "point-label value"),
        ]
    description = "; ".join(f"{name} {low} to {high}" for name, (low, high) in row.intervals.items())
    return picture(WIDTH, frame.bottom + 38, f"{METHOD}, {row.mean}%: {description}.", parts)


if __name__ == "__main__":
    write_figures()
