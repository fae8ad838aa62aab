"""Task accuracies of two classifiers against each other: tasks that are hard for one are hard for the other too."""

from __future__ import annotations

import math

from markupsafe import Markup

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.comparison.task_scatter import TaskScatter, task_scatters
from shotproof.report.figures.chart_axes import x_axis, y_axis
from shotproof.report.figures.svg import Box, Scale, element, line, picture, shortened
from shotproof.report.pages.matrix import group_name

WIDTH, LABEL_LENGTH = 300, 24


def task_scatter_panels(comparison: Comparison) -> list[tuple[str, Markup]]:
    """Each task set with its figure."""
    return [
        (f"{group_name(comparison, one.design, one.group)}: r = {one.r}", _figure(one, METRIC_NAMES[comparison.metric]))
        for one in task_scatters(comparison)
    ]


def _figure(one: TaskScatter, metric: str) -> Markup:
    frame = Box(44, 8, WIDTH - 8, 264)
    reached = [*one.x.tolist(), *one.y.tolist()]
    low, high = max(min(reached) - 2, -1.0), min(max(reached) + 2, 101.0)
    x_scale, y_scale = Scale(low, high, frame.left, frame.right), Scale(low, high, frame.bottom, frame.top)
    parts = [
        *x_axis(x_scale, frame, f"{metric} of {shortened(one.first, LABEL_LENGTH)} (%)"),
        *y_axis(y_scale, frame, f"{metric} of {shortened(one.second, LABEL_LENGTH)} (%)"),
        line(x_scale(low), y_scale(low), x_scale(high), y_scale(high), "reference"),
    ]
    for x, y, tasks in zip(one.x.tolist(), one.y.tolist(), one.tasks.tolist(), strict=True):
        told = element("title", f"{x:.1f} and {y:.1f}: {tasks} {'task' if tasks == 1 else 'tasks'}")
        radius = 1.5 * math.sqrt(tasks)  # the area says how many
        parts.append(element("circle", told, cx=x_scale(x), cy=y_scale(y), r=radius, class_="mark c0"))
    total = int(one.tasks.sum())
    described = f"{metric} of {one.first} and of {one.second} on {total} tasks, Pearson's r {one.r}."
    return picture(WIDTH, 304, described, parts)
