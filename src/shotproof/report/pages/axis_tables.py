"""What is lost, one section per axis: the table, and the figures in points, in skill and of accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from shotproof.comparison.card import SHOTS
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.estimate_rows import EstimateRow
from shotproof.comparison.numbers import METRIC_NAMES, metric_symbol
from shotproof.core.records import UNKNOWN
from shotproof.report.figures.charts import Bar, Point, gap_bars, gap_domain, scatter
from shotproof.report.figures.loss_curves import LossPanel, context_panels
from shotproof.report.figures.svg import marker
from shotproof.results.origin import Design
from shotproof.tasks.sampler import Axis

HEADINGS: dict[Axis, str] = {
    "attributes": "What happens when attributes mislead?",
    "contexts": "What happens when the {context} changes?",
    "conditions": "What happens when conditions differ?",
    "difficulty": "What happens on hard tasks?",
    "classes": "What happens when classes are alike?",
    "queries": "What happens when queries are unequal?",
}
NAMES: dict[str, str] = {
    SHOTS: "Random tasks",
    **{"attributes": "Attributes", "contexts": "Contexts", "conditions": "Conditions", "difficulty": "Hard tasks"},
    **{"classes": "Alike classes", "queries": "Unequal queries"},
}

Names = Mapping[tuple[Design, str], str]  # what figures call the task sets of a section


@dataclass(frozen=True)
class BarFigure:
    """Bars, one panel per encoder (of a single method one for all), and the names of the series."""

    panels: list[tuple[str, Markup]]
    keys: list[tuple[str, str]]
    named: bool


@dataclass(frozen=True)
class AxisSection:
    """One axis: a row per classifier, design and task set, by the gap; and its figures.

    heading: the question that it answers
    labels: what marks of the scatters are labeled by
    points, skill: what is lost, in points (beyond the placebo where there is one) and in percent of the skill
    """

    axis: Axis
    rows: list[EstimateRow]
    scatters: list[tuple[str, Markup]]
    encoder_keys: list[tuple[Markup, str]]
    points: BarFigure
    skill: BarFigure
    labels: str
    contexts: list[LossPanel]
    heading: str
    has_placebo: bool

    @property
    def name(self) -> str:
        """What the contents call it."""
        return NAMES[self.axis]

    @property
    def sets(self) -> list[str]:
        """Return the task sets that are measured."""
        return list(dict.fromkeys(row.tasks for row in self.rows))

    @property
    def references(self) -> list[str]:
        """What they are measured against."""
        return list(dict.fromkeys(str(row.reference) for row in self.rows))

    def metric(self, name: str, labels: list[str]) -> str:
        """Return a metric on the only set of these, by its symbol, or on any of them."""
        return metric_symbol(name, labels[0]) if len(labels) == 1 else f"{name} on the set"


def axis_sections(comparison: Comparison) -> list[AxisSection]:
    """One section per axis that something was measured on, in the order of `HEADINGS`."""
    sections = []
    metric = METRIC_NAMES[comparison.metric]
    for axis in HEADINGS:
        rows = comparison.rows("gap", axis=axis)
        if not rows:
            continue
        several = len({row.tasks for row in rows}) > 1
        named = {
            (row.design, row.tasks): f"{row.tasks}, " * several + comparison.design_name(row.design) for row in rows
        }
        excesses = comparison.rows("excess", axis=axis)
        beyond = {(row.design, row.tasks) for row in excesses}
        lost = [*(row for row in rows if (row.design, row.tasks) not in beyond), *excesses]
        sections.append(
            AxisSection(
                axis,
                rows,
                _scatters(comparison, rows, named),
                [(marker(5, 5, index), name) for index, name in enumerate(comparison.encoder_names.values())],
                _bars(comparison, lost, named, f"{metric} lost (points)"),
                _bars(comparison, comparison.rows("skill_lost", axis=axis), named, f"skill lost in {metric} (%)"),
                "encoder" if _tells_encoders(comparison) else "method",
                context_panels(comparison) if axis == "contexts" else [],
                HEADINGS[axis].format(context=comparison.context.replace("_", " ")),
                bool(excesses),
            )
        )
    return sections


def _scatters(comparison: Comparison, rows: Sequence[EstimateRow], named: Names) -> list[tuple[str, Markup]]:
    """Return the reference's Acc against the wAcc on the other tasks, one panel per design and task set."""
    panels = []
    for (design, label), name in named.items():
        chosen = [row for row in rows if (row.design, row.tasks) == (design, label)]
        accuracy, worst = metric_symbol("Acc", str(chosen[0].reference)), metric_symbol("wAcc", label)
        points = []
        for row in chosen:
            x, y = (
                comparison.number(row, "accuracy", "acc", row.reference),
                comparison.number(row, "accuracy", "wacc"),
            )
            assert x is not None
            assert y is not None
            encoder, method = row.classifier
            label = comparison.encoder_names[encoder] if _tells_encoders(comparison) else method
            title = comparison.classifier_title(row.classifier)
            points.append(Point(label, title, comparison.encoders.index(encoder), x, y))
        described = f"Scatter plot of {len(points)} classifiers on {name} tasks: {accuracy} against {worst}."
        figure = scatter(points, f"{accuracy} (%)", f"{worst} (%)", f"{described} The table has the values.")
        panels.append((name, figure))
    return panels


def _bars(comparison: Comparison, rows: Sequence[EstimateRow], named: Names, unit: str) -> BarFigure:
    """One panel per encoder with a row per method, or of a single method one panel with a row per encoder.

    A row has one bar per design and task set; all are on one scale. What has no number is left out.
    """
    shown = [row for row in rows if row.interval.has_mean]
    tints = {key: index + (len(named) == 1) for index, key in enumerate(named)}  # the first is pale beside others
    domain = gap_domain([row.interval for row in shown])
    by_encoder = _tells_encoders(comparison)
    bars: dict[str, dict[str, list[Bar]]] = {}
    for row in shown:
        encoder, key = comparison.encoder_names[row.classifier.encoder], (row.design, row.tasks)
        panel, name = (row.classifier.method, encoder) if by_encoder else (encoder, row.classifier.method)
        bars.setdefault(panel, {}).setdefault(name, []).append(Bar(tints[key], named[key], row.interval))
    panels = []
    for panel, groups in bars.items():
        what = f"{len(groups)} encoders with {panel}" if by_encoder else f"{len(groups)} methods on encoder {panel}"
        described = f"Bars of {what}: {unit}. The table has the values."
        panels.append((panel, gap_bars(list(groups.items()), domain, unit, described)))
    keys = [(f"t{tints[key] % 6}", name) for key, name in named.items()]
    return BarFigure(panels, keys, {row.classifier.encoder for row in rows} != {UNKNOWN})


def _tells_encoders(comparison: Comparison) -> bool:
    """Return whether classifiers differ in their encoder alone."""
    return len(comparison.methods) == 1 and len(comparison.encoders) > 1


def alone_rows(comparison: Comparison) -> list[EstimateRow]:
    """Accuracies on task sets that are neither measured against a reference nor one."""
    gaps = comparison.rows("gap")
    used = {(row.design, label) for row in gaps for label in (row.tasks, row.reference)}
    return [row for row in comparison.rows("accuracy", "acc") if (row.design, row.tasks) not in used]
