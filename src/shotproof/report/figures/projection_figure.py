"""Projection of a task onto a plane: a panel per task set on the same axes, a color and shape per class."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from shotproof.analysis.projection import ProjectedTask, Projection
from shotproof.report.figures.svg import COLORS, MARKERS, Box, Scale, element, line, marker, picture

SIDE = 260.0
NAMES = {"pca": "PCA", "tsne": "t-SNE"}


def projection_part(projection: Projection) -> dict[str, Any]:
    """Build the heading, one figure per task set, the legend, and the share of the variance that the plane shows."""
    places = np.concatenate([task.places for task in projection.tasks])
    frame = Box(6, 6, SIDE - 6, SIDE - 6)
    # One scale for both axes, so that distances are not distorted.
    middle, reach = (places.max(axis=0) + places.min(axis=0)) / 2, float(np.ptp(places, axis=0).max()) / 2 or 1.0
    scales = [
        Scale(float(middle[0]) - 1.06 * reach, float(middle[0]) + 1.06 * reach, frame.left, frame.right),
        Scale(float(middle[1]) - 1.06 * reach, float(middle[1]) + 1.06 * reach, frame.bottom, frame.top),
    ]
    return {
        "name": f"{projection.encoder}, {NAMES[projection.how]}, task {projection.task}",
        "panels": [(task.sampler, _panel(task, frame, scales, projection)) for task in projection.tasks],
        "keys": [(marker(5, 5, slot), name) for slot, name in enumerate(projection.tasks[0].labels)],
        "explained": None if projection.explained is None else round(100 * projection.explained),
    }


def _panel(task: ProjectedTask, frame: Box, scales: Sequence[Scale], projection: Projection) -> Markup:
    left, top, right, bottom = frame.left, frame.top, frame.right, frame.bottom
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    parts = [line(*start, *end, "axis") for start, end in pairwise(corners)]
    for index in np.argsort(task.is_query, kind="stable"):  # queries last, on top
        x, y = (scale(float(value)) for scale, value in zip(scales, task.places[index], strict=True))
        slot, query = int(task.slots[index]), bool(task.is_query[index])
        tooltip = f"{task.items[index]}: {'query' if query else 'support'} of {task.labels[slot]}"
        parts.append(_mark(x, y, slot, query=query, tooltip=tooltip))
    counts = f"{int((~task.is_query).sum())} support and {int(task.is_query.sum())} query items"
    heading = f"{NAMES[projection.how]} of task {projection.task} of {task.sampler} on {projection.encoder}"
    return picture(SIDE, SIDE, f"{heading}: {counts}.", parts)


def _mark(x: float, y: float, slot: int, *, query: bool, tooltip: str | None = None) -> Markup:
    """Draw the mark of a class: small for a query, large and ringed for a support item."""
    title = [element("title", tooltip)] if tooltip else []
    transform = f"translate({x:.1f} {y:.1f}) scale({0.75 if query else 1.6})"
    class_ = f"mark c{slot % COLORS}" + ("" if query else " support")
    return element("path", *title, d=MARKERS[slot % len(MARKERS)], transform=transform, class_=class_)
