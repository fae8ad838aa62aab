"""What is lost, one section per axis: the table, and the figures in points, in skill and of accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from shotproof.comparison.comparison import Comparison, GapRow
from shotproof.comparison.wide import METRIC_NAMES
from shotproof.core.records import UNKNOWN
from shotproof.report.figures.charts import Bar, Point, gap_bars, gap_domain, scatter
from shotproof.report.figures.context_figures import ContextPanel, context_panels
from shotproof.report.figures.svg import marker
from shotproof.report.pages import wording
from shotproof.results.origin import Design
from shotproof.stats.intervals import Interval
from shotproof.stats.ranks import RankRange
from shotproof.tasks.sampler import Axis

HEADINGS: dict[Axis, str] = {
    "attributes": "What happens when attributes mislead?",
    "contexts": "What happens when the {context} changes?",
    "conditions": "What happens when conditions differ?",
    "difficulty": "What happens on hard tasks?",
    "classes": "What happens when classes are alike?",
    "queries": "What happens when queries are unequal?",
}
NAMES: dict[Axis, str] = {
    **{"attributes": "Attributes", "contexts": "Contexts", "conditions": "Conditions", "difficulty": "Hard tasks"},
    **{"classes": "Alike classes", "queries": "Unequal queries"},
}


@dataclass(frozen=True)
class BarFigure:
    """Bars, one panel per encoder (of a single method one for all), and the names of the series."""

    panels: list[tuple[str, Markup]]
    keys: list[tuple[str, str]]
    named: bool


@dataclass(frozen=True)
class AxisSection:
    """One axis: its rows, and its figures.

    ranks: by the share of skill lost, by row
    heading: the question that it answers
    labels: what marks of the scatters are labeled by
    points, skill: what is lost, in points (beyond the placebo where there is one) and in percent of the skill
    """

    axis: Axis
    rows: list[GapRow]
    ranks: list[RankRange | None]
    scatters: list[tuple[str, Markup]]
    encoder_keys: list[tuple[Markup, str]]
    points: BarFigure
    skill: BarFigure
    labels: str
    contexts: list[ContextPanel]
    heading: str

    @property
    def name(self) -> str:
        """What the contents call it."""
        return NAMES[self.axis]

    @property
    def sets(self) -> list[str]:
        """The task sets that are measured."""
        return list(dict.fromkeys(row.biased.sampler for row in self.rows if row.biased))

    @property
    def references(self) -> list[str]:
        """What they are measured against."""
        return list(dict.fromkeys(row.reference.sampler for row in self.rows if row.reference))

    @property
    def has_placebo(self) -> bool:
        """Whether some gap stands beside that of a placebo."""
        return any(row.excess for row in self.rows)

    def metric(self, name: str, labels: list[str]) -> str:
        """A metric on the only set of these, by its symbol, or on any of them."""
        return wording.metric(name, labels[0]) if len(labels) == 1 else f"{name} on the set"


def axis_sections(comparison: Comparison) -> list[AxisSection]:
    """One section for each axis, in the order of the axes."""
    ranks = {
        (block.design, loss.label, row.classifier): row.rank(comparison.metric)
        for block in comparison.blocks
        for loss in block.losses
        for row in loss.skill.rows
    }
    sections = []
    for axis in HEADINGS:
        rows = [row for row in comparison.rows if row.axis == axis]
        if not rows:
            continue
        several = len({row.biased.sampler for row in rows if row.biased}) > 1
        named: dict[tuple[Design, str], str] = {}
        for row in rows:
            assert row.biased is not None
            design_name = comparison.design_name(row.design)
            label = row.biased.sampler
            named[row.design, label] = f"{label}, {design_name}" if several else design_name
        metric = METRIC_NAMES[comparison.metric]
        in_points = _bars(
            comparison, rows, named, lambda row: (row.excess or row.gap)[comparison.metric], f"{metric} lost (points)"
        )
        in_skill = _bars(
            comparison, rows, named, lambda row: row.skill_lost[comparison.metric], f"skill lost in {metric} (%)"
        )
        sections.append(
            AxisSection(
                axis,
                rows,
                [ranks.get((row.design, _label(row), row.classifier)) for row in rows],
                _scatters(comparison, rows, named),
                [(marker(5, 5, index), name) for index, name in enumerate(comparison.encoder_names.values())],
                in_points,
                in_skill,
                "encoder" if _tells_encoders(comparison) else "method",
                context_panels(comparison) if axis == "contexts" else [],
                HEADINGS[axis].format(context=comparison.context.replace("_", " ")),
            )
        )
    return sections


def _label(row: GapRow) -> str:
    assert row.biased is not None
    return row.biased.sampler


def _scatters(
    comparison: Comparison, rows: Sequence[GapRow], named: dict[tuple[Design, str], str]
) -> list[tuple[str, Markup]]:
    """The reference's Acc against the wAcc on the other tasks, one panel per design and task set."""
    panels = []
    for (design, label), name in named.items():
        chosen = [row for row in rows if (row.design, _label(row)) == (design, label)]
        reference = next(row.reference.sampler for row in chosen if row.reference)
        accuracy, worst = wording.metric("Acc", reference), wording.metric("wAcc", label)
        points = [
            Point(
                comparison.encoder_names[row.encoder] if _tells_encoders(comparison) else row.method,
                comparison.classifier_title(row.classifier),
                comparison.encoders.index(row.encoder),
                row.reference.accuracy,
                row.biased.worst,
            )
            for row in chosen
            if row.reference and row.biased
        ]
        described = f"Scatter plot of {len(points)} classifiers on {name} tasks: {accuracy} against {worst}."
        figure = scatter(points, f"{accuracy} (%)", f"{worst} (%)", f"{described} The table has the values.")
        panels.append((name, figure))
    return panels


def _bars(
    comparison: Comparison,
    rows: Sequence[GapRow],
    named: dict[tuple[Design, str], str],
    value: Callable[[GapRow], Interval],
    unit: str,
) -> BarFigure:
    """One panel per encoder with a row per method, or of a single method one panel with a row per encoder.

    A row has one bar per design and task set; all are on one scale. What has no number is left out.
    """
    shown = [(row, one) for row in rows if not _lacks_number(one := value(row))]
    tints = {key: index + (len(named) == 1) for index, key in enumerate(named)}  # the first is pale beside others
    domain = gap_domain([one for _, one in shown])
    by_encoder = _tells_encoders(comparison)
    bars: dict[str, dict[str, list[Bar]]] = {}
    for row, one in shown:
        encoder, key = comparison.encoder_names[row.encoder], (row.design, _label(row))
        panel, name = (row.method, encoder) if by_encoder else (encoder, row.method)
        bars.setdefault(panel, {}).setdefault(name, []).append(Bar(tints[key], named[key], one))
    panels = []
    for panel, groups in bars.items():
        what = f"{len(groups)} encoders with {panel}" if by_encoder else f"{len(groups)} methods on encoder {panel}"
        described = f"Bars of {what}: {unit}. The table has the values."
        panels.append((panel, gap_bars(list(groups.items()), domain, unit, described)))
    keys = [(f"t{tints[key] % 6}", name) for key, name in named.items()]
    return BarFigure(panels, keys, {row.encoder for row in rows} != {UNKNOWN})


def _tells_encoders(comparison: Comparison) -> bool:
    """Whether classifiers differ in their encoder alone."""
    return len(comparison.methods) == 1 and len(comparison.encoders) > 1


def _lacks_number(interval: Interval) -> bool:
    return interval.mean != interval.mean


def alone_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Classifiers on task sets that are neither measured against a reference nor one."""
    return [
        {"row": row, "measured": row.reference or row.biased}
        for row in comparison.rows
        if row.axis is None and (row.reference or row.biased)
    ]
