"""Figures that explain hard tasks: mismatch by attribute, accuracy against inverse loss, ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from shotproof.analysis.explanation.explain import Explanation
from shotproof.analysis.explanation.hardness import Hardness, Ways
from shotproof.comparison.numbers import bounds, percent
from shotproof.report.figures.charts import ATTRIBUTE_LENGTH, WIDTH
from shotproof.report.figures.svg import (
    COLORS,
    Box,
    Scale,
    curve,
    ends,
    line,
    marker,
    names_width,
    picture,
    row_name,
    whisker,
    x_axis,
    y_axis,
)

MAX_POINTS = 250  # points per set in the scatter: more would cover each other


def mismatch_dots(explanation: Explanation, count: int, description: str) -> Markup:
    """Draw the mismatch of `count` attributes, one mark per set (Hard-Meta-Dataset++, Fig. 5), with ticks at chance."""
    rows = explanation.attributes[:count]
    left = names_width([row.attribute for row in rows], ATTRIBUTE_LENGTH)
    lane = 7.0
    step = lane * len(explanation.sets) + 8
    frame = Box(left, 4, WIDTH - 12, 4 + step * len(rows))
    shares = [task_set for row in rows for task_set in row.sets]
    values = [end for share in shares for end in (*ends(share.mismatch), share.chance)]
    scale = Scale.around([0.0, *values], frame.left, frame.right, 0.02)
    parts = x_axis(scale, frame, "mismatch of support and query (points)")
    for index, row in enumerate(rows):
        top = frame.top + step * index + 4
        parts.append(row_name(row.attribute, ATTRIBUTE_LENGTH, left - 6, top + (step - 8) / 2 + 3.5))
        for series, (task_set, share) in enumerate(zip(explanation.sets, row.sets, strict=True)):
            y, color = top + lane * (series + 0.5), f"c{series % COLORS}"
            chance = scale(share.chance)
            tooltip = f"{row.attribute}, {task_set.name}: {percent(share.mismatch.mean)} {bounds(share.mismatch)}, "
            tooltip += f"by chance {percent(share.chance)}"
            parts.append(line(chance, y - lane / 2, chance, y + lane / 2, f"whisker {color}"))
            parts.append(whisker(scale, share.mismatch, y, f"whisker strong {color}"))
            parts.append(marker(scale(share.mismatch.mean), y, series, tooltip))
    return picture(WIDTH, frame.bottom + 40, description, parts)


def hardness_scatter(sets: Sequence[Hardness | None], description: str) -> Markup:
    """Draw accuracy against inverse query loss, one mark per task, one color per set (Hard-Meta-Dataset++, Fig. 8).

    None stands for a set on which the classifier was not evaluated.
    """
    frame = Box(44, 8, WIDTH - 8, 244)
    points = [_select(task_set) if task_set else [] for task_set in sets]
    x_scale = Scale.around([x for of_set in points for x, _ in of_set], frame.left, frame.right, 0.04, least=0.005)
    y_scale = Scale.around([y for of_set in points for _, y in of_set], frame.bottom, frame.top, 0.04)
    parts = x_axis(x_scale, frame, "inverse query loss (power of ten)") + y_axis(y_scale, frame, "Acc (%)")
    parts += [marker(x_scale(x), y_scale(y), series) for series, of_set in enumerate(points) for x, y in of_set]
    return picture(WIDTH, frame.bottom + 40, description, parts)


def ways_curves(sets: Sequence[Ways], description: str) -> Markup:
    """Draw the share of tasks with each number of classes, one curve per set (Hard-Meta-Dataset++, Fig. 42)."""
    frame = Box(44, 12, WIDTH - 12, 190)
    shares = [
        {way: 100 * tasks / sum(task_set.tasks.values()) for way, tasks in task_set.tasks.items()} for task_set in sets
    ]
    all_ways = range(min(map(min, shares)), max(map(max, shares)) + 1)
    x_scale = Scale(all_ways[0] - 1, all_ways[-1] + 1, frame.left, frame.right)
    y_scale = Scale(0, 1.08 * max(share for by_way in shares for share in by_way.values()), frame.bottom, frame.top)
    parts = x_axis(x_scale, frame, "classes per task") + y_axis(y_scale, frame, "share of tasks (%)")
    for series, by_way in enumerate(shares):
        parts.append(curve([(x_scale(way), y_scale(by_way.get(way, 0.0))) for way in all_ways], series))
        parts += [
            marker(x_scale(way), y_scale(share), series, f"{way} classes: {percent(share)}% of the tasks")
            for way, share in by_way.items()
        ]
    return picture(WIDTH, frame.bottom + 40, description, parts)


def _select(hardness: Hardness) -> list[tuple[float, float]]:
    """Select at most MAX_POINTS tasks, evenly spaced by loss, as points (log10 of inverse loss, accuracy)."""
    order = np.argsort(hardness.loss, kind="stable")
    rows = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), MAX_POINTS)).round().astype(int))]
    inverse = -np.log10(np.maximum(hardness.loss[rows], 1e-9))  # a loss of zero would be at infinity
    return list(zip(inverse.tolist(), hardness.accuracy[rows].tolist(), strict=True))
