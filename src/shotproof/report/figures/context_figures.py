"""Context shift: accuracy in each matched set (SpurAudio, Figures 3 and 7), loss against dial and shots (2 and 15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from shotproof.comparison.comparison import Comparison, GapRow
from shotproof.report.figures.chart_axes import ends, whisker, x_axis, y_axis
from shotproof.report.figures.charts import LABEL_LENGTH, WIDTH
from shotproof.report.figures.svg import COLORS, Box, Scale, curve, line, marker, names_width, picture, row_name
from shotproof.report.pages.wording import bounds, percent
from shotproof.results.origin import Design
from shotproof.stats.intervals import Interval

IID = "iid"
SETS = (IID, "clean", "ood", "hard-ood")

DODGE = 3.0  # from one series to the next, so that whiskers at one value stand beside each other

Curve = dict[float, Interval]  # the loss at each dial or number of shots


@dataclass(frozen=True)
class ContextPanel:
    """A figure with its heading and, where marks need it, the names of its series."""

    name: str
    figure: Markup
    keys: list[tuple[Markup, str]]


def context_panels(comparison: Comparison) -> list[ContextPanel]:
    """For each design with matched sets: the accuracies; then the losses against the dial and against the shots."""
    rows = [row for row in comparison.rows if row.reference and row.reference.sampler == IID and row.biased]
    by_design: dict[Design, list[GapRow]] = {}
    for row in rows:
        by_design.setdefault(row.design, []).append(row)
    panels = [_accuracies(comparison, design, of_design) for design, of_design in by_design.items()]
    panels += _curves(comparison, rows, "share of the background, a", lambda d: d.dial, {"catalog": None, "dial": None})
    panels += _curves(comparison, rows, "shots per class", lambda d: d.shot, {"shot": None})
    return panels


def _accuracies(comparison: Comparison, design: Design, rows: Sequence[GapRow]) -> ContextPanel:
    """Acc of each classifier in each set, below each other."""
    measured: dict[str, dict[str, Interval]] = {}
    for row in rows:
        of_one = measured.setdefault(_name(comparison, row), {})
        for side in (row.reference, row.biased):
            if side:
                of_one[side.sampler] = side.accuracy
    present = [name for name in SETS if any(name in of_one for of_one in measured.values())]
    left = names_width(measured, LABEL_LENGTH)
    step = 6.0 * len(present) + 6
    frame = Box(left, 4, WIDTH - 10, 4 + step * len(measured))
    reached = [end for of_one in measured.values() for one in of_one.values() for end in ends(one)]
    scale = Scale.around(reached, frame.left, frame.right)
    parts = x_axis(scale, frame, "Acc (%)")
    for place, (name, of_one) in enumerate(sorted(measured.items(), key=lambda entry: -_mean(entry[1]))):
        top = frame.top + step * place
        parts.append(row_name(name, LABEL_LENGTH, left - 6, top + step / 2 + 3))
        for series, sampler in enumerate(present):
            if sampler in of_one:
                y, one = top + 6 + 6.0 * series, of_one[sampler]
                parts.append(whisker(scale, one, y, f"whisker strong c{series}"))
                told = f"{name}, {sampler}: {percent(one.mean)} {bounds(one)}"
                parts.append(marker(scale(one.mean), y, series, told))
    described = f"Accuracy of {len(measured)} classifiers on {', '.join(present)} tasks. The table has the values."
    keys = [(marker(5, 5, series), name) for series, name in enumerate(present)]
    return ContextPanel(
        f"Acc, {comparison.design_name(design)}", picture(WIDTH, frame.bottom + 40, described, parts), keys
    )


def _curves(
    comparison: Comparison,
    rows: Sequence[GapRow],
    x_label: str,
    value: Callable[[Design], float | None],
    apart: Mapping[str, Any],
) -> list[ContextPanel]:
    """The loss of Acc against a property of the designs, one panel per set, where it takes several values."""
    groups: dict[tuple[str, Design, str], dict[str, Curve]] = {}  # by data set, design and task set
    for row in rows:
        x = value(row.design)
        if row.gap and row.biased and x is not None:
            key = (row.design.data_set, replace(row.design, **apart), row.biased.sampler)
            groups.setdefault(key, {}).setdefault(_name(comparison, row), {})[x] = row.gap["acc"]
    panels = []
    several = len({data_set for data_set, _, _ in groups}) > 1
    for (data_set, design, sampler), curves in groups.items():
        if any(len(points) > 1 for points in curves.values()):
            shape = f"{design.way}-way" + (f" {design.shot}-shot" if design.shot else "")
            dial = "" if design.dial is None else f", a = {design.dial:g}"
            of_data = f"{data_set}, " if several else ""
            name = f"Loss of Acc, iid - {sampler}, {of_data}{shape}{dial}"
            points = [point for of_one in curves.values() for point in of_one.items()]
            parts = in_parts(curves)
            for number, part in enumerate(parts, 1):
                described = f"Loss of accuracy of {len(part)} classifiers, iid minus {sampler}, against {x_label}."
                keys = [(marker(5, 5, series), name) for series, name in enumerate(part)]
                of_several = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
                panels.append(ContextPanel(name + of_several, lines_figure(part, points, x_label, described), keys))
    return panels


def in_parts(curves: Mapping[str, Curve]) -> list[dict[str, Curve]]:
    """No more curves together than there are colors, those that lose alike in one part."""
    if len(curves) <= COLORS:
        return [dict(curves)]
    ordered = sorted(curves.items(), key=lambda entry: -_mean(entry[1]))
    size = -(-len(ordered) // -(-len(ordered) // COLORS))
    return [dict(ordered[start : start + size]) for start in range(0, len(ordered), size)]


def lines_figure(
    curves: Mapping[str, Curve],
    points: Sequence[tuple[float, Interval]],
    x_label: str,
    description: str,
    y_label: str = "loss of Acc (points)",
) -> Markup:
    """One line per classifier, with whiskers, and zero marked; the axes hold all points, also those of other parts."""
    frame = Box(44, 8, WIDTH - 10, 240)
    values = sorted({x for x, _ in points})
    x_scale = Scale.around(values, frame.left, frame.right, least=0.005)
    y_scale = Scale.around([0.0, *(end for _, gap in points for end in ends(gap))], frame.bottom, frame.top)
    parts = x_axis(x_scale, frame, x_label, values) + y_axis(y_scale, frame, y_label)
    parts.append(line(frame.left, y_scale(0), frame.right, y_scale(0), "reference"))
    for series, (name, of_one) in enumerate(curves.items()):
        beside = DODGE * (series - (len(curves) - 1) / 2)
        places = [(x_scale(x) + beside, y_scale(gap.mean)) for x, gap in sorted(of_one.items())]
        parts.append(curve(places, series))
        for (x, gap), (left, top) in zip(sorted(of_one.items()), places, strict=True):
            parts.append(whisker(y_scale, gap, left, f"whisker c{series % COLORS}", vertical=True))
            parts.append(marker(left, top, series, f"{name} at {x:g}: {percent(gap.mean)} {bounds(gap)}"))
    return picture(WIDTH, frame.bottom + 40, description, parts)


def _name(comparison: Comparison, row: GapRow) -> str:
    return row.method if len(comparison.encoders) == 1 else comparison.classifier_title(row.classifier)


def _mean(of_one: Mapping[str, Interval] | Curve) -> float:
    return sum(one.mean for one in of_one.values()) / len(of_one)
