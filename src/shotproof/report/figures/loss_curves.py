"""Losses as figures: set by set (SpurAudio, Figures 3 and 7), against dial and shots (2 and 15), over stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.estimate_rows import EstimateRow
from shotproof.comparison.numbers import METRIC_NAMES, bounds, percent
from shotproof.comparison.sentences import classifier_name
from shotproof.comparison.stages import stage_curves
from shotproof.report.figures.charts import WIDTH, Mark, interval_figure
from shotproof.report.figures.svg import (
    COLORS,
    Box,
    Scale,
    curve,
    ends,
    line,
    marker,
    picture,
    whisker,
    x_axis,
    y_axis,
)
from shotproof.results.origin import Design
from shotproof.stats.intervals import Interval

SETS = ("iid", "clean", "ood", "hard-ood")  # samplers, in the order in which their sets are drawn

DODGE = 3.0  # distance from one series to the next, so that whiskers at the same value do not overlap

Curve = dict[float, Interval]  # the loss at each dial or number of shots


@dataclass(frozen=True)
class LossPanel:
    """Figure with its heading and, if marks need it, the names of its series."""

    name: str
    figure: Markup
    keys: list[tuple[Markup, str]]


def context_panels(comparison: Comparison) -> list[LossPanel]:
    """Draw the accuracies of each design with matched sets, then the losses against the dial and against the shots."""
    gaps = comparison.rows("gap", "acc", axis="contexts")
    sets = {(row.design, label) for row in gaps for label in (row.reference, row.tasks)}
    by_design: dict[Design, list[EstimateRow]] = {}
    for row in comparison.rows("accuracy", "acc"):
        if (row.design, row.tasks) in sets:
            by_design.setdefault(row.design, []).append(row)
    panels = [_accuracy_panel(comparison, design, rows) for design, rows in by_design.items()]
    dial_fields = {"catalog": None, "dial": None}
    panels += _curve_panels(comparison, gaps, "share of the background, a", lambda d: d.dial, dial_fields)
    panels += _curve_panels(comparison, gaps, "shots per class", lambda d: d.shot, {"shot": None})
    return panels


def _accuracy_panel(comparison: Comparison, design: Design, rows: Sequence[EstimateRow]) -> LossPanel:
    """Draw Acc of each classifier in each set, below each other."""
    by_classifier: dict[str, dict[str, Interval]] = {}
    for row in rows:
        by_classifier.setdefault(classifier_name(comparison, row.classifier), {})[row.tasks] = row.interval
    samplers = {row.tasks: row.sampler for row in rows}
    labels = sorted(samplers, key=lambda label: SETS.index(samplers[label]) if samplers[label] in SETS else len(SETS))
    figure_rows = []
    for name, intervals in sorted(by_classifier.items(), key=lambda entry: -_mean(entry[1])):
        marks = [
            Mark(
                intervals[label],
                f"{name}, {label}: {percent(intervals[label].mean)} {bounds(intervals[label])}",
                series,
            )
            for series, label in enumerate(labels)
            if label in intervals
        ]
        figure_rows.append((name, marks))
    description = (
        f"Accuracy of {len(by_classifier)} classifiers on {', '.join(labels)} tasks. The table has the values."
    )
    figure = interval_figure(figure_rows, "Acc (%)", description, step=6, space=6)
    keys = [(marker(5, 5, series), name) for series, name in enumerate(labels)]
    return LossPanel(f"Acc, {comparison.design_name(design)}", figure, keys)


def _curve_panels(
    comparison: Comparison,
    rows: Sequence[EstimateRow],
    x_label: str,
    value: Callable[[Design], float | None],
    cleared: Mapping[str, Any],
) -> list[LossPanel]:
    """Draw the loss of Acc against a property of the designs, one panel per set, if it has several values.

    `cleared` are the fields of designs that depend on the property, so that their designs are joined in one curve.
    """
    groups: dict[tuple[str, Design, str, str | None], dict[str, Curve]] = {}  # by data set, design and both task sets
    for row in rows:
        x = value(row.design)
        if x is not None:
            key = (row.design.data_set, replace(row.design, **cleared), row.tasks, row.reference)
            curves = groups.setdefault(key, {})
            curves.setdefault(classifier_name(comparison, row.classifier), {})[x] = row.interval
    panels: list[LossPanel] = []
    several = len({data_set for data_set, *_ in groups}) > 1
    for (data_set, design, label, reference), curves in groups.items():
        if any(len(points) > 1 for points in curves.values()):
            shape = f"{design.way}-way" + (f" {design.shot}-shot" if design.shot else "")
            dial = "" if design.dial is None else f", a = {design.dial:g}"
            prefix = f"{data_set}, " if several else ""
            name = f"Loss of Acc, {reference} - {label}, {prefix}{shape}{dial}"
            content = f"loss of accuracy, {reference} minus {label}, against {x_label}"
            panels += _line_panels(name, curves, x_label, content, "loss of Acc (points)")
    return panels


def split_curves(curves: Mapping[str, Curve]) -> list[dict[str, Curve]]:
    """Divide the curves into parts of at most as many as there are colors, with similar losses in one part."""
    if len(curves) <= COLORS:
        return [dict(curves)]
    by_loss = sorted(curves.items(), key=lambda entry: -_mean(entry[1]))
    size = -(-len(by_loss) // -(-len(by_loss) // COLORS))
    return [dict(by_loss[start : start + size]) for start in range(0, len(by_loss), size)]


def lines_figure(
    curves: Mapping[str, Curve],
    points: Sequence[tuple[float, Interval]],
    x_label: str,
    description: str,
    y_label: str,
) -> Markup:
    """Draw one line per classifier, with whiskers, and mark zero; the axes hold all points, also of other parts."""
    frame = Box(44, 8, WIDTH - 10, 240)
    values = sorted({x for x, _ in points})
    x_scale = Scale.around(values, frame.left, frame.right, least=0.005)
    y_scale = Scale.around([0.0, *(end for _, gap in points for end in ends(gap))], frame.bottom, frame.top)
    parts = x_axis(x_scale, frame, x_label, values) + y_axis(y_scale, frame, y_label)
    parts.append(line(frame.left, y_scale(0), frame.right, y_scale(0), "reference"))
    for series, (name, gaps) in enumerate(curves.items()):
        shift = DODGE * (series - (len(curves) - 1) / 2)
        places = [(x_scale(x) + shift, y_scale(gap.mean)) for x, gap in sorted(gaps.items())]
        parts.append(curve(places, series))
        for (x, gap), (left, top) in zip(sorted(gaps.items()), places, strict=True):
            parts.append(whisker(y_scale, gap, left, f"whisker c{series % COLORS}", vertical=True))
            parts.append(marker(left, top, series, f"{name} at {x:g}: {percent(gap.mean)} {bounds(gap)}"))
    return picture(WIDTH, frame.bottom + 40, description, parts)


def _mean(intervals: Mapping[str, Interval] | Curve) -> float:
    return sum(interval.mean for interval in intervals.values()) / len(intervals)


def stage_panels(comparison: Comparison) -> list[LossPanel]:
    """Draw the loss against the stage of the network for each encoder, task set and design, one line per method."""
    groups: dict[tuple[str, str, str, Design], dict[str, Curve]] = {}
    for stage_curve in stage_curves(comparison):
        key = (stage_curve.encoder, stage_curve.reference, stage_curve.label, stage_curve.design)
        groups.setdefault(key, {})[stage_curve.method] = {float(stage): gap for stage, gap in stage_curve.gaps.items()}
    panels: list[LossPanel] = []
    metric = METRIC_NAMES[comparison.metric]
    for (encoder, reference, label, design), curves in groups.items():
        tasks = comparison.design_name(design)
        content = f"loss of {metric} on {tasks} tasks, {reference} minus {label}, at each stage of {encoder}"
        name = f"{encoder}: {reference} - {label}, {tasks}"
        panels += _line_panels(name, curves, "stage", content, f"loss of {metric} (points)")
    return panels


def _line_panels(
    name: str, curves: Mapping[str, Curve], x_label: str, content: str, y_label: str
) -> Iterator[LossPanel]:
    """Draw the curves as one panel, or as several on the same axes if there are more curves than colors."""
    points = [point for gaps in curves.values() for point in gaps.items()]
    parts = split_curves(curves)
    for number, part in enumerate(parts, 1):
        suffix = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
        figure = lines_figure(part, points, x_label, f"{len(part)} classifiers: {content}.", y_label)
        keys = [(marker(5, 5, series), classifier) for series, classifier in enumerate(part)]
        yield LossPanel(name + suffix, figure, keys)
