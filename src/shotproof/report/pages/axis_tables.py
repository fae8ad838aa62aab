"""Losses, one section per axis: the table, and figures of points lost, skill lost and accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from shotproof.comparison.card import SHOTS
from shotproof.comparison.change_tables import ChangeTable, change_tables
from shotproof.comparison.changed_sets import AXIS as CHANGES
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
    "classes": "What happens when classes are similar?",
    "queries": "What happens when classes have unequal numbers of queries?",
    "changes": "What happens when one thing is changed?",
}
NAMES: dict[str, str] = {
    SHOTS: "Random tasks",
    **{"attributes": "Attributes", "contexts": "Contexts", "conditions": "Conditions", "difficulty": "Hard tasks"},
    **{"classes": "Similar classes", "queries": "Unequal queries", "changes": "Changes"},
}

Names = Mapping[tuple[Design, str], str]  # names of the task sets of a section in figures


@dataclass(frozen=True)
class BarFigure:
    """Bars, one panel per encoder (or a single one for a single method), and the names of the series."""

    panels: list[tuple[str, Markup]]
    keys: list[tuple[str, str]]
    named: bool


@dataclass(frozen=True)
class AxisSection:
    """One axis: a row per classifier, design and task set, sorted by the gap, and figures.

    heading: question that the section answers
    changes: tables with a row per change instead, if the axis is that of changes
    labels: whether marks of the scatters are labeled by encoder or by method
    points, skill: loss in points (beyond the placebo if there is one), and in percent of the skill
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
    changes: list[ChangeTable]

    @property
    def name(self) -> str:
        """Return the section's name in the table of contents."""
        return NAMES[self.axis]

    @property
    def sets(self) -> list[str]:
        """Return the task sets that are measured."""
        return list(dict.fromkeys(row.tasks for row in self.rows))

    @property
    def references(self) -> list[str]:
        """Return the references of these task sets."""
        return list(dict.fromkeys(str(row.reference) for row in self.rows))

    def metric(self, name: str, labels: list[str]) -> str:
        """Name a metric by its symbol if there is a single set, otherwise as a metric on the row's set."""
        return metric_symbol(name, labels[0]) if len(labels) == 1 else f"{name} on the set"


def axis_sections(comparison: Comparison) -> list[AxisSection]:
    """Build one section per measured axis, in the order of `HEADINGS`."""
    sections = []
    metric = METRIC_NAMES[comparison.metric]
    for axis in HEADINGS:
        rows = comparison.rows("gap", axis=axis)
        if not rows:
            continue
        if axis == CHANGES:
            sections.append(_changes_section(comparison, rows))
            continue
        several = len({row.tasks for row in rows}) > 1
        names = {
            (row.design, row.tasks): f"{row.tasks}, " * several + comparison.design_name(row.design) for row in rows
        }
        excesses = comparison.rows("excess", axis=axis)
        with_excess = {(row.design, row.tasks) for row in excesses}
        losses = [*(row for row in rows if (row.design, row.tasks) not in with_excess), *excesses]
        sections.append(
            AxisSection(
                axis,
                rows,
                _scatters(comparison, rows, names),
                [(marker(5, 5, index), name) for index, name in enumerate(comparison.encoder_names.values())],
                _bars(comparison, losses, names, f"{metric} lost (points)"),
                _bars(comparison, comparison.rows("skill_lost", axis=axis), names, f"skill lost in {metric} (%)"),
                "encoder" if _compares_encoders(comparison) else "method",
                context_panels(comparison) if axis == "contexts" else [],
                HEADINGS[axis].format(context=comparison.context.replace("_", " ")),
                bool(excesses),
                [],
            )
        )
    return sections


def _changes_section(comparison: Comparison, rows: list[EstimateRow]) -> AxisSection:
    """Build the section of changes: many sets, so a row for each, and one figure instead of one per set."""
    tables = change_tables(comparison)
    nothing = BarFigure([], [], named=False)
    skill = _change_bars(comparison, tables)
    return AxisSection(CHANGES, rows, [], [], nothing, skill, "", [], HEADINGS[CHANGES], False, tables)


def _change_bars(comparison: Comparison, tables: Sequence[ChangeTable]) -> BarFigure:
    """Draw the skill lost to each change, one panel per encoder and design, one bar per method."""
    unit = f"skill lost in {METRIC_NAMES[comparison.metric]} (%)"
    methods = {method: index + (len(comparison.methods) == 1) for index, method in enumerate(comparison.methods)}
    cells = [cell for table in tables for row in table.rows for cell in row.cells]
    domain = gap_domain([cell.skill_lost for cell in cells if cell.skill_lost and cell.skill_lost.has_mean])
    panels = []
    for table in tables:
        for encoder in dict.fromkeys(classifier.encoder for classifier in table.classifiers):
            groups = []
            for row in table.rows:
                bars = [
                    Bar(methods[classifier.method], classifier.method, cell.skill_lost)
                    for classifier, cell in zip(table.classifiers, row.cells, strict=True)
                    if classifier.encoder == encoder and cell.skill_lost and cell.skill_lost.has_mean
                ]
                name = row.change if row.severity is None else f"{row.change} {row.severity}"
                groups += [(name, bars)] if bars else []
            if groups:
                designs = f", {comparison.design_name(table.design)}" if len(tables) > 1 else ""
                name = f"{comparison.encoder_names[encoder]}{designs}"
                description = f"Bars of {len(groups)} changes on {name}: {unit}. The table has the values."
                panels.append((name, gap_bars(groups, domain, unit, description)))
    return BarFigure(panels, [(f"t{tint % 6}", method) for method, tint in methods.items()], named=True)


def _scatters(comparison: Comparison, rows: Sequence[EstimateRow], names: Names) -> list[tuple[str, Markup]]:
    """Draw the reference's Acc against the wAcc on the other tasks, one panel per design and task set."""
    panels = []
    for (design, label), name in names.items():
        set_rows = [row for row in rows if (row.design, row.tasks) == (design, label)]
        accuracy, worst = metric_symbol("Acc", str(set_rows[0].reference)), metric_symbol("wAcc", label)
        points = []
        for row in set_rows:
            x, y = (
                comparison.number(row, "accuracy", "acc", row.reference),
                comparison.number(row, "accuracy", "wacc"),
            )
            assert x is not None
            assert y is not None
            encoder, method = row.classifier
            label = comparison.encoder_names[encoder] if _compares_encoders(comparison) else method
            title = comparison.classifier_title(row.classifier)
            points.append(Point(label, title, comparison.encoders.index(encoder), x, y))
        description = f"Scatter plot of {len(points)} classifiers on {name} tasks: {accuracy} against {worst}."
        figure = scatter(points, f"{accuracy} (%)", f"{worst} (%)", f"{description} The table has the values.")
        panels.append((name, figure))
    return panels


def _bars(comparison: Comparison, rows: Sequence[EstimateRow], names: Names, unit: str) -> BarFigure:
    """Draw one panel per encoder with a row per method, or for a single method one panel with a row per encoder.

    A row has one bar per design and task set; all bars are on one scale. Rows without a number are left out.
    """
    with_mean = [row for row in rows if row.interval.has_mean]
    tints = {key: index + (len(names) == 1) for index, key in enumerate(names)}  # the first tint is too pale alone
    domain = gap_domain([row.interval for row in with_mean])
    by_encoder = _compares_encoders(comparison)
    bars: dict[str, dict[str, list[Bar]]] = {}
    for row in with_mean:
        encoder, key = comparison.encoder_names[row.classifier.encoder], (row.design, row.tasks)
        panel, name = (row.classifier.method, encoder) if by_encoder else (encoder, row.classifier.method)
        bars.setdefault(panel, {}).setdefault(name, []).append(Bar(tints[key], names[key], row.interval))
    panels = []
    for panel, groups in bars.items():
        content = f"{len(groups)} encoders with {panel}" if by_encoder else f"{len(groups)} methods on encoder {panel}"
        description = f"Bars of {content}: {unit}. The table has the values."
        panels.append((panel, gap_bars(list(groups.items()), domain, unit, description)))
    keys = [(f"t{tints[key] % 6}", name) for key, name in names.items()]
    return BarFigure(panels, keys, {row.classifier.encoder for row in rows} != {UNKNOWN})


def _compares_encoders(comparison: Comparison) -> bool:
    """Return whether the classifiers differ only in their encoder."""
    return len(comparison.methods) == 1 and len(comparison.encoders) > 1


def alone_rows(comparison: Comparison) -> list[EstimateRow]:
    """Collect the accuracies on task sets that have no reference and are none."""
    gaps = comparison.rows("gap")
    compared = {(row.design, label) for row in gaps for label in (row.tasks, row.reference)}
    return [row for row in comparison.rows("accuracy", "acc") if (row.design, row.tasks) not in compared]
