"""The page's figures: Acc against wAcc-A (FewSTAB, Fig. 5), gaps with intervals (Fig. 4), attributes that cost most,
intervals side by side, the plan's curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

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
    shortened,
    text,
    whisker,
    x_axis,
    y_axis,
)
from shotproof.report.pages.matrix import group_name
from shotproof.stats.costs import AttributeCost
from shotproof.stats.intervals import Interval

# Narrow enough to be read on a phone without shrinking its text.
WIDTH = 360
LABEL_LENGTH = 20
ATTRIBUTE_LENGTH = 22
SQUARE, TITLE_LENGTH = 300, 24  # of a scatter of tasks
NAME_LENGTH, STEP = 22, 22.0  # of a classifier's standing


@dataclass(frozen=True)
class Point:
    """A classifier in the scatter: `series` is its encoder's number."""

    label: str
    name: str
    series: int
    x: Interval
    y: Interval


@dataclass(frozen=True)
class Bar:
    """A gap in the bars: `series` is its task set's number."""

    series: int
    name: str
    gap: Interval


def scatter(points: Sequence[Point], x_label: str, y_label: str, description: str) -> Markup:
    """Points with whiskers and direct labels."""
    frame = Box(44, 8, WIDTH - 8, 304)
    x_scale = Scale.around([end for point in points for end in ends(point.x)], frame.left, frame.right, 0.12)
    y_scale = Scale.around([end for point in points for end in ends(point.y)], frame.bottom, frame.top, 0.08)
    places = [(x_scale(point.x.mean), y_scale(point.y.mean)) for point in points]
    parts = [*x_axis(x_scale, frame, x_label), *y_axis(y_scale, frame, y_label)]
    for point, (x, y) in zip(points, places, strict=True):
        class_ = f"whisker c{point.series % COLORS}"
        parts += [whisker(x_scale, point.x, y, class_), whisker(y_scale, point.y, x, class_, vertical=True)]
    labels = [shortened(point.label, LABEL_LENGTH) for point in points]
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
    reached = [0.0, *(end for gap in gaps for end in ends(gap))]
    return min(reached), max(reached)


def gap_bars(
    groups: Sequence[tuple[str, Sequence[Bar]]], domain: tuple[float, float], x_label: str, description: str
) -> Markup:
    """One group of bars per method or encoder, one bar per task set, with whiskers and values."""
    left = names_width([name for name, _ in groups], LABEL_LENGTH)
    bar, space = 12.0, 8.0
    bottom = 4 + sum(len(bars) * bar + space for _, bars in groups)
    frame = Box(left, 4, WIDTH - 36, bottom)
    scale = Scale.around(domain, frame.left, frame.right, 0.02)
    parts = x_axis(scale, frame, x_label)
    top = frame.top + space / 2
    for name, bars in groups:
        parts.append(row_name(name, LABEL_LENGTH, left - 6, top + len(bars) * bar / 2 + 3.5))
        for one in bars:
            parts += _gap_bar(scale, one, f"{name}, {one.name}: {x_label}", top, bar)
            top += bar
        top += space
    parts.append(line(scale(0), frame.top, scale(0), frame.bottom, "axis"))
    return picture(WIDTH, bottom + 40, description, parts)


@dataclass(frozen=True)
class Mark:
    """An interval in a row of a figure: `series` is its color, `told` its tooltip, `label` stands at its end."""

    interval: Interval
    told: str
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
    """Intervals as marks with whiskers, below each other, those of one name together.

    Args:
        rows: names with their marks, from the top down
        x_label: what the axis has
        description: for those who do not see it
        step: from one mark to the next
        space: from one name to the next
        length: of names; longer ones are shortened
        zero: whether zero is marked
    """
    left = names_width([name for name, _ in rows], length)
    marks = [mark for _, of_name in rows for mark in of_name]
    right = 10 + 46 * any(mark.label for mark in marks)
    frame = Box(left, 4, WIDTH - right, 4 + step * len(marks) + space * len(rows))
    ends_of = [end for mark in marks for end in ends(mark.interval)]
    scale = Scale.around([0.0, *ends_of] if zero else ends_of, frame.left, frame.right)
    parts = x_axis(scale, frame, x_label)
    if zero:
        parts.append(line(scale(0), frame.top, scale(0), frame.bottom, "reference"))
    top = frame.top + space / 2
    for name, of_name in rows:
        parts.append(row_name(name, length, left - 6, top + len(of_name) * step / 2 + 3.5))
        for mark in of_name:
            y = top + step / 2
            parts.append(whisker(scale, mark.interval, y, f"whisker strong c{mark.series % COLORS}"))
            parts.append(marker(scale(mark.interval.mean), y, mark.series, mark.told))
            if mark.label:
                parts.append(text(frame.right + 6, y + 3.5, mark.label))
            top += step
        top += space
    return picture(WIDTH, frame.bottom + 40, description, parts)


def attribute_dots(costs: Sequence[AttributeCost], description: str) -> Markup:
    """What each planted attribute costs, as a dot with its whisker, against nothing lost."""
    rows = []
    for cost in costs:
        told = f"{cost.name}: {percent(cost.cost.mean)} {bounds(cost.cost)}, {counted(cost.tasks, 'task')}"
        rows.append((cost.name, [Mark(cost.cost, told)]))
    x_label = "cost (percentage points)"
    return interval_figure(rows, x_label, description, step=18, space=0, length=ATTRIBUTE_LENGTH, zero=True)


def interval_rows(methods: Sequence[tuple[str, Sequence[Interval]]], x_label: str, description: str) -> Markup:
    """Return the intervals of each method below each other, each with its name; a refused one is left out."""
    rows = []
    for name, intervals in methods:
        given = [interval for interval in intervals if not interval.refused]
        marks = [Mark(one, f"{name}: {percent(one.mean)} {bounds(one)} {one.covers}", 0, one.covers) for one in given]
        rows += [(name, marks)] if marks else []
    return interval_figure(rows, x_label, description, step=12, space=9)


def plan_figure(plan: Plan, own_query: int, description: str) -> Markup:
    """The expected half-width against the number of queries; the best number and that of the results are marked."""
    points = [(point.query, point.half_width) for point in plan.curve if point.half_width is not None]
    frame = Box(44, 12, WIDTH - 12, 190)
    x_scale = Scale(0, max(query for query, _ in points) + 1, frame.left, frame.right)
    y_scale = Scale(0, 1.08 * max(half for _, half in points), frame.bottom, frame.top)
    parts = x_axis(x_scale, frame, "queries per class") + y_axis(y_scale, frame, "half-width (points)")
    places = [(x_scale(query), y_scale(half)) for query, half in points]
    parts.append(curve(places, 0))
    for (query, half), (x, y) in zip(points, places, strict=True):
        if query in (plan.query, own_query):
            name = "best" if query == plan.query else "these results"
            tasks = next(point.tasks for point in plan.curve if point.query == query)
            told = f"{name}: {counted(query, 'query', 'queries')}, {counted(tasks, 'task')}, ±{percent(half)}"
            parts.append(marker(x, y, 0 if query == plan.query else 1, told))
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
    """Return the label in its box, tied to its point by a line where it is not right beside it."""
    end_x, end_y = nearest(x, y, box)
    leader = [line(x, y, end_x, end_y, f"leader c{color}")] if math.hypot(end_x - x, end_y - y) > 7 else []
    middle = (box.left + box.right) / 2
    return [*leader, text(middle, box.bottom - 2.5, label, "middle", f"point-label c{color}")]


@dataclass(frozen=True)
class Standing:
    """One classifier on one axis; the others by their least, quartiles and most."""

    name: str
    own: Interval
    others: tuple[float, ...]


def standing(rows: Sequence[Standing], x_label: str, description: str) -> Markup:
    """One row per axis: a line over the range of all, a bar over their middle half, and the own interval."""
    left = names_width([row.name for row in rows], NAME_LENGTH)
    frame = Box(left, 4, WIDTH - 10, 4 + STEP * len(rows))
    reached = [end for row in rows for end in (*ends(row.own), *row.others)]
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


def task_scatter_panels(comparison: Comparison) -> list[tuple[str, Markup]]:
    """Return each task set with its figure."""
    return [
        (
            f"{group_name(comparison, task_scatter.design, task_scatter.group)}: r = {task_scatter.r}",
            _task_scatter(task_scatter, METRIC_NAMES[comparison.metric]),
        )
        for task_scatter in task_scatters(comparison)
    ]


def _task_scatter(one: TaskScatter, metric: str) -> Markup:
    frame = Box(44, 8, SQUARE - 8, 264)
    reached = [*one.x.tolist(), *one.y.tolist()]
    low, high = max(min(reached) - 2, -1.0), min(max(reached) + 2, 101.0)
    x_scale, y_scale = Scale(low, high, frame.left, frame.right), Scale(low, high, frame.bottom, frame.top)
    parts = [
        *x_axis(x_scale, frame, f"{metric} of {shortened(one.first, TITLE_LENGTH)} (%)"),
        *y_axis(y_scale, frame, f"{metric} of {shortened(one.second, TITLE_LENGTH)} (%)"),
        line(x_scale(low), y_scale(low), x_scale(high), y_scale(high), "reference"),
    ]
    for x, y, tasks in zip(one.x.tolist(), one.y.tolist(), one.tasks.tolist(), strict=True):
        told = element("title", f"{x:.1f} and {y:.1f}: {tasks} {'task' if tasks == 1 else 'tasks'}")
        radius = 1.5 * math.sqrt(tasks)  # the area says how many
        parts.append(element("circle", told, cx=x_scale(x), cy=y_scale(y), r=radius, class_="mark c0"))
    total = int(one.tasks.sum())
    described = f"{metric} of {one.first} and of {one.second} on {total} tasks, Pearson's r {one.r}."
    return picture(SQUARE, 304, described, parts)
