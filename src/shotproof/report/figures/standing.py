"""Where one classifier stands among all: its interval on each axis, over the range of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from shotproof.comparison.numbers import bounds, percent
from shotproof.report.figures.chart_axes import ends, whisker, x_axis
from shotproof.report.figures.svg import Box, Scale, element, line, marker, names_width, picture, row_name
from shotproof.stats.intervals import Interval

WIDTH, NAME_LENGTH, STEP = 360, 22, 22.0


@dataclass(frozen=True)
class Standing:
    """One classifier on one axis; the others by their least, quartiles and most."""

    name: str
    own: Interval
    others: tuple[float, ...]


def standing(rows: Sequence[Standing], x_label: str, description: str) -> Markup:
    """One row per axis: a line over the range of all, a bar over their middle half, and the own interval."""
    left = names_width([one.name for one in rows], NAME_LENGTH)
    frame = Box(left, 4, WIDTH - 10, 4 + STEP * len(rows))
    reached = [end for one in rows for end in (*ends(one.own), *one.others)]
    scale = Scale.around(reached, frame.left, frame.right)
    parts = x_axis(scale, frame, x_label)
    for number, one in enumerate(rows):
        y = frame.top + STEP * (number + 0.5)
        least, low, median, high, most = map(scale, one.others)
        tooltip = f"{one.name}: {percent(one.own.mean)} {bounds(one.own)}; half of all within "
        tooltip += f"{percent(one.others[1])} and {percent(one.others[3])}"
        parts += [
            row_name(one.name, NAME_LENGTH, left - 6, y + 3.5),
            line(least, y, most, y, "axis"),
            element("rect", x=low, y=y - 5, width=max(high - low, 1.0), height=10, class_="t0"),
            line(median, y - 5, median, y + 5, "axis"),
            whisker(scale, one.own, y, "whisker strong c1"),
            marker(scale(one.own.mean), y, 1, tooltip),
        ]
    return picture(WIDTH, frame.bottom + 40, description, parts)
