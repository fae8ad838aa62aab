"""Figures of the report: Acc against wAcc-A (FewSTAB, Fig. 5), gaps with intervals (Fig. 4), costliest attributes,
intervals side by side, the curve of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from shotproof.comparison.changed_sets import AXIS as CHANGES
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES, bounds, percent, typeset
from shotproof.comparison.plot import TaskScatter, task_scatters
from shotproof.core.nouns import counted
from shotproof.planning.task_plan import Plan
from shotproof.report.figures.svg import (
    COLORS,
    Box,
    Scale,
    curve,
    element,
    ends,
    line,
    marker,
    names_width,
    nearest,
    picture,
    place_labels,
    row_name,
    shorten,
    text,
    whisker,
    x_axis,
    y_axis,
)
from shotproof.report.pages.matrix import group_name
from shotproof.stats.costs import AttributeCost
from shotproof.stats.intervals import Interval

# Narrow enough for a phone without shrinking the text.
WIDTH = 360
LABEL_LENGTH = 20
ATTRIBUTE_LENGTH = 22
SQUARE, TITLE_LENGTH = 300, 24  # scatter of tasks: side, length of a classifier's name
NAME_LENGTH, STEP = 22, 22.0  # standing of a classifier: length of an axis name, height of a row


@dataclass(frozen=True)
class Point:
    """Classifier in the scatter: `series` is its encoder's number."""

    label: str
    name: str
    series: int
    x: Interval
    y: Interval


@dataclass(frozen=True)
class Bar:
    """Gap in the bars: `series` is its task set's number."""

    series: int
    name: str
    gap: Interval


def scatter(points: Sequence[Point], x_label: str, y_label: str, description: str) -> Markup:
    """Draw points with whiskers and labels."""
    frame = Box(44, 8, WIDTH - 8, 304)
    x_scale = Scale.around([end for point in points for end in ends(point.x)], frame.left, frame.right, 0.12)
    y_scale = Scale.around([end for point in points for end in ends(point.y)], frame.bottom, frame.top, 0.08)
    places = [(x_scale(point.x.mean), y_scale(point.y.mean)) for point in points]
    parts = [*x_axis(x_scale, frame, x_label), *y_axis(y_scale, frame, y_label)]
    for point, (x, y) in zip(points, places, strict=True):
        class_ = f"whisker c{point.series % COLORS}"
        parts += [whisker(x_scale, point.x, y, class_), whisker(y_scale, point.y, x, class_, vertical=True)]
    labels = [shorten(point.label, LABEL_LENGTH) for point in points]
    boxes = place_labels(places, labels, frame)
    for point, (x, y), label, box in zip(points, places, labels, boxes, strict=True):
        if box:
            parts += _label(x, y, label, box, point.series % COLORS)
    for point, (x, y) in zip(points, places, strict=True):
        tooltip = (
            f"{point.name}: {x_label} {percent(point.x.mean)} {bounds(point.x)}, "
            f"{y_label} {percent(point.y.mean)} {bounds(point.y)}"
        )
        parts.append(marker(x, y, point.series, tooltip))
    return picture(WIDTH, 344, description, parts)


def gap_domain(gaps: Sequence[Interval]) -> tuple[float, float]:
    """Return the range of all gaps and zero, so that several panels share one axis."""
    values = [0.0, *(end for gap in gaps for end in ends(gap))]
    return min(values), max(values)


def gap_bars(
    groups: Sequence[tuple[str, Sequence[Bar]]], domain: tuple[float, float], x_label: str, description: str
) -> Markup:
    """Draw one group of bars per method or encoder, one bar per task set, with whiskers and values."""
    left = names_width([name for name, _ in groups], LABEL_LENGTH)
    height, space = 12.0, 8.0
    bottom = 4 + sum(len(bars) * height + space for _, bars in groups)
    frame = Box(left, 4, WIDTH - 36, bottom)
    scale = Scale.around(domain, frame.left, frame.right, 0.02)
    parts = x_axis(scale, frame, x_label)
    top = frame.top + space / 2
    for name, bars in groups:
        parts.append(row_name(name, LABEL_LENGTH, left - 6, top + len(bars) * height / 2 + 3.5))
        for bar in bars:
            parts += _gap_bar(scale, bar, f"{name}, {bar.name}: {x_label}", top, height)
            top += height
        top += space
    parts.append(line(scale(0), frame.top, scale(0), frame.bottom, "axis"))
    return picture(WIDTH, bottom + 40, description, parts)


@dataclass(frozen=True)
class Mark:
    """Interval in a row of a figure: `series` is its color, `label` stands at its end."""

    interval: Interval
    tooltip: str
    series: int = 0
    label: str = ""


def interval_figure(
    rows: Sequence[tuple[str, Sequence[Mark]]],
    x_label: str,
    description: str,
    *,
    step: float,
    space: float,
    length: int = LABEL_LENGTH,
    zero: bool = False,
) -> Markup:
    """Draw intervals as marks with whiskers, below each other, grouped by name.

    Args:
        rows: names with their marks, from the top down
        x_label: label of the axis
        description: text alternative of the figure
        step: distance from one mark to the next
        space: extra distance from one name to the next
        length: length to which names are shortened
        zero: whether to mark zero
    """
    left = names_width([name for name, _ in rows], length)
    marks = [mark for _, row_marks in rows for mark in row_marks]
    right = 10 + 46 * any(mark.label for mark in marks)
    frame = Box(left, 4, WIDTH - right, 4 + step * len(marks) + space * len(rows))
    values = [end for mark in marks for end in ends(mark.interval)]
    scale = Scale.around([0.0, *values] if zero else values, frame.left, frame.right)
    parts = x_axis(scale, frame, x_label)
    if zero:
        parts.append(line(scale(0), frame.top, scale(0), frame.bottom, "reference"))
    top = frame.top + space / 2
    for name, row_marks in rows:
        parts.append(row_name(name, length, left - 6, top + len(row_marks) * step / 2 + 3.5))
        for mark in row_marks:
            y = top + step / 2
            parts.append(whisker(scale, mark.interval, y, f"whisker strong c{mark.series % COLORS}"))
            parts.append(marker(scale(mark.interval.mean), y, mark.series, mark.tooltip))
            if mark.label:
                parts.append(text(frame.right + 6, y + 3.5, mark.label))
            top += step
        top += space
    return picture(WIDTH, frame.bottom + 40, description, parts)


def attribute_dots(costs: Sequence[AttributeCost], description: str) -> Markup:
    """Draw the cost of each planted attribute as a dot with its whisker, with zero marked."""
    rows = []
    for cost in costs:
        tooltip = f"{cost.name}: {percent(cost.cost.mean)} {bounds(cost.cost)}, {counted(cost.tasks, 'task')}"
        rows.append((cost.name, [Mark(cost.cost, tooltip)]))
    x_label = "cost (percentage points)"
    return interval_figure(rows, x_label, description, step=18, space=0, length=ATTRIBUTE_LENGTH, zero=True)


def interval_rows(methods: Sequence[tuple[str, Sequence[Interval]]], x_label: str, description: str) -> Markup:
    """Draw the intervals of each method below each other, each with its name; refused intervals are left out."""
    rows = []
    for name, intervals in methods:
        marks = [
            Mark(
                interval,
                f"{name}: {percent(interval.mean)} {bounds(interval)} {interval.covers}",
                label=interval.covers,
            )
            for interval in intervals
            if not interval.refused
        ]
        rows += [(name, marks)] if marks else []
    return interval_figure(rows, x_label, description, step=12, space=9)


def plan_figure(plan: Plan, current_query: int, description: str) -> Markup:
    """Draw the expected half-width against the number of queries, and mark the best number and the current one."""
    points = [(point.query, point.half_width) for point in plan.curve if point.half_width is not None]
    frame = Box(44, 12, WIDTH - 12, 190)
    x_scale = Scale(0, max(query for query, _ in points) + 1, frame.left, frame.right)
    y_scale = Scale(0, 1.08 * max(half for _, half in points), frame.bottom, frame.top)
    parts = x_axis(x_scale, frame, "queries per class") + y_axis(y_scale, frame, "half-width (points)")
    places = [(x_scale(query), y_scale(half)) for query, half in points]
    parts.append(curve(places, 0))
    for (query, half), (x, y) in zip(points, places, strict=True):
        if query in (plan.query, current_query):
            name = "best" if query == plan.query else "these results"
            tasks = next(point.tasks for point in plan.curve if point.query == query)
            tooltip = f"{name}: {counted(query, 'query', 'queries')}, {counted(tasks, 'task')}, ±{percent(half)}"
            parts.append(marker(x, y, 0 if query == plan.query else 1, tooltip))
            anchor = "end" if x > (frame.left + frame.right) / 2 else "start"
            parts.append(text(x, y + 16, f"{name}: {query} (±{percent(half)})", anchor, "value"))
    return picture(WIDTH, frame.bottom + 40, description, parts)


def _gap_bar(scale: Scale, bar: Bar, name: str, top: float, height: float) -> list[Markup]:
    zero, end = scale(0), scale(bar.gap.mean)
    tooltip = element("title", f"{name} {percent(bar.gap.mean)} {bounds(bar.gap)}")
    rectangle = element(
        "rect",
        tooltip,
        x=min(zero, end),
        y=top + 1,
        width=abs(end - zero),
        height=height - 2,
        class_=f"bar t{bar.series % 6}",
    )
    middle = top + height / 2
    beyond = max(zero, scale(ends(bar.gap)[1])) + 4
    value = text(beyond, middle + 3.5, typeset(percent(bar.gap.mean)), class_="value")
    return [rectangle, whisker(scale, bar.gap, middle, "whisker ink"), value]


def _label(x: float, y: float, label: str, box: Box, color: int) -> list[Markup]:
    """Draw the label in its box, with a leader to its point unless it is right beside it."""
    end_x, end_y = nearest(x, y, box)
    leader = [line(x, y, end_x, end_y, f"leader c{color}")] if math.hypot(end_x - x, end_y - y) > 7 else []
    middle = (box.left + box.right) / 2
    return [*leader, text(middle, box.bottom - 2.5, label, "middle", f"point-label c{color}")]


@dataclass(frozen=True)
class Standing:
    """One classifier on one axis; all classifiers by their minimum, quartiles and maximum."""

    name: str
    interval: Interval
    quantiles: tuple[float, ...]


def standing(rows: Sequence[Standing], x_label: str, description: str) -> Markup:
    """Draw one row per axis: the range of all classifiers, a bar over their middle half, and one's own interval."""
    left = names_width([row.name for row in rows], NAME_LENGTH)
    frame = Box(left, 4, WIDTH - 10, 4 + STEP * len(rows))
    values = [end for row in rows for end in (*ends(row.interval), *row.quantiles)]
    scale = Scale.around(values, frame.left, frame.right)
    parts = x_axis(scale, frame, x_label)
    for number, row in enumerate(rows):
        y = frame.top + STEP * (number + 0.5)
        minimum, low, median, high, maximum = map(scale, row.quantiles)
        tooltip = f"{row.name}: {percent(row.interval.mean)} {bounds(row.interval)}; half of all classifiers are "
        tooltip += f"between {percent(row.quantiles[1])} and {percent(row.quantiles[3])}"
        parts += [
            row_name(row.name, NAME_LENGTH, left - 6, y + 3.5),
            line(minimum, y, maximum, y, "axis"),
            element("rect", x=low, y=y - 5, width=max(high - low, 1.0), height=10, class_="t0"),
            line(median, y - 5, median, y + 5, "axis"),
            whisker(scale, row.interval, y, "whisker strong c1"),
            marker(scale(row.interval.mean), y, 1, tooltip),
        ]
    return picture(WIDTH, frame.bottom + 40, description, parts)


def task_scatter_panels(comparison: Comparison) -> list[tuple[str, Markup]]:
    """Draw a scatter for each task set, with its heading; none for changed tasks, which are many and much alike."""
    return [
        (
            f"{group_name(comparison, task_scatter.design, task_scatter.group)}: r = {task_scatter.r}",
            _task_scatter(task_scatter, METRIC_NAMES[comparison.metric]),
        )
        for task_scatter in task_scatters(comparison)
        if task_scatter.group.axis != CHANGES
    ]


def _task_scatter(points: TaskScatter, metric: str) -> Markup:
    frame = Box(44, 8, SQUARE - 8, 264)
    values = [*points.x.tolist(), *points.y.tolist()]
    low, high = max(min(values) - 2, -1.0), min(max(values) + 2, 101.0)
    x_scale, y_scale = Scale(low, high, frame.left, frame.right), Scale(low, high, frame.bottom, frame.top)
    parts = [
        *x_axis(x_scale, frame, f"{metric} of {shorten(points.first, TITLE_LENGTH)} (%)"),
        *y_axis(y_scale, frame, f"{metric} of {shorten(points.second, TITLE_LENGTH)} (%)"),
        line(x_scale(low), y_scale(low), x_scale(high), y_scale(high), "reference"),
    ]
    for x, y, tasks in zip(points.x.tolist(), points.y.tolist(), points.tasks.tolist(), strict=True):
        tooltip = element("title", f"{x:.1f} and {y:.1f}: {tasks} {'task' if tasks == 1 else 'tasks'}")
        radius = 1.5 * math.sqrt(tasks)  # the area is proportional to the number of tasks
        parts.append(element("circle", tooltip, cx=x_scale(x), cy=y_scale(y), r=radius, class_="mark c0"))
    total = int(points.tasks.sum())
    description = f"{metric} of {points.first} and of {points.second} on {total} tasks, Pearson's r {points.r}."
    return picture(SQUARE, 304, description, parts)
