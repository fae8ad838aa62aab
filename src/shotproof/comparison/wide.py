"""Comparison as tables for readers: one table per design, one row per classifier, task sets side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.core.nouns import counted
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.stats.block import Block, Group
from shotproof.stats.intervals import IntervalName, meanings


@dataclass(frozen=True)
class Cell:
    """Mean under one interval, with its half-width and its standard deviation over seeds, if there are any.

    best: whether no other classifier is conclusively better
    """

    mean: float
    half_width: float | None
    deviation: float | None
    best: bool

    @property
    def mean_text(self) -> str:
        """Return the mean with one decimal, without a minus before zero; a dash if there is no number."""
        if math.isnan(self.mean):
            return "–"
        return f"{round(self.mean, 1) + 0.0:.1f}"

    @property
    def margin(self) -> str:
        """Return the half-width and the deviation, if there are any, e.g. `±0.4 (0.2)`."""
        half = [] if self.half_width is None else [f"±{self.half_width:.1f}"]
        return " ".join(half if self.deviation is None else [*half, f"({self.deviation:.1f})"])


@dataclass(frozen=True)
class WideTable:
    """Table of one design; each group has a column per metric, and a cell is None if a classifier was not evaluated."""

    block: Block
    groups: list[Group]
    rows: list[tuple[Classifier, list[Cell | None]]]


def wide_table(comparison: Comparison, block: Block) -> WideTable:
    """Collect all task sets of a design, with gaps and skill lost, under the first interval."""
    interval_name = comparison.first_interval_name
    groups = [*block.measured, *(group for loss in block.losses for group in (loss.gap, loss.skill))]
    columns = [(group, metric, best_of(group, metric, interval_name)) for group in groups for metric in METRICS]
    rows = [
        (classifier, [cell_of(*column, classifier, interval_name) for column in columns])
        for classifier in block.classifiers
    ]
    return WideTable(block, groups, rows)


def best_of(group: Group, metric: Metric, interval_name: IntervalName) -> set[Classifier]:
    """Return the classifiers that no other is conclusively better than; the smallest loss is best.

    Empty if there is no choice: a single classifier, or no interval for any pair.
    """
    pairs = group.pairs[metric, interval_name]
    if all(pair.interval.refused for pair in pairs):
        return set()
    is_lost = group.against is not None
    beaten = {pair.b if (pair.conclusion == "+") != is_lost else pair.a for pair in pairs if pair.conclusion != "0"}
    with_number = [row for row in group.rows if not math.isnan(row.intervals[metric][interval_name].mean)]
    return {row.classifier for row in with_number if row.classifier not in beaten}


def title_of(block: Block) -> str:
    """Return the title of a design, e.g. `birds, 5-way 1-shot, 15 queries per class, split test`."""
    design = block.design
    parts = [
        design.data_set,
        design.shape,
        "" if design.query is None else f"{counted(design.query, 'query', 'queries')} per class",
        "" if design.dial is None else f"a = {design.dial:g}",
        f"split {design.split}" if design.split else "",
    ]
    return ", ".join(part for part in parts if part)


def legend_of(comparison: Comparison, table: WideTable) -> list[str]:
    """Explain the table in sentences."""
    name = comparison.first_interval_name
    meaning = meanings(comparison.medium)[name]
    block = table.block
    has_deviations = any(cell and cell.deviation is not None for _, cells in table.rows for cell in cells)
    counts = ", ".join(_format_tasks(group) for group in block.measured)
    units = (
        "in percent, gaps in points, skill lost in percent of the accuracy above chance" if block.gaps else "in percent"
    )
    sentences = [
        f"Tasks: {counts}.",
        f"Accuracy (Acc) and accuracy on the worst class of a task (wAcc) {units}.",
        f"No interval: {block.refused[name]}."
        if name in block.refused
        else f"± is the half-width of the {100 * comparison.level:.4g}% interval '{name}'. It covers: {meaning}",
    ]
    if has_deviations:
        sentences.append("In parentheses: the standard deviation over seeds.")
    if any(cell and cell.best for _, cells in table.rows for cell in cells):
        correction = ", corrected after Holm" if comparison.corrected else ""
        better = "higher (for losses, lower)" if block.gaps else "higher"
        sentences.append(f"Bold: no other is conclusively {better} under this interval, by paired tests{correction}.")
    return sentences


def cell_of(
    group: Group, metric: Metric, best: set[Classifier], classifier: Classifier, interval_name: IntervalName
) -> Cell | None:
    """Return the cell of a classifier in one column; None if it was not evaluated."""
    row = group.row(classifier)
    if row is None:
        return None
    interval = row.intervals[metric][interval_name]
    half_width = None if interval.refused else interval.half_width
    return Cell(interval.mean, half_width, row.spread(metric), classifier in best)


def _format_tasks(group: Group) -> str:
    seeds = f", {len(group.seeds)} seeds" if len(group.seeds) > 1 else ""
    return f"{group.label} ({group.tasks}{seeds})"


def to_html(comparison: Comparison) -> str:
    """Write one table per design: every classifier on every task set, with its gaps; notes below."""
    parts = [_html_table(comparison, wide_table(comparison, block)) for block in comparison.blocks]
    parts += [f"<p>{escape(note)}</p>" for note in comparison.notes]
    return "\n".join(parts)


def _html_table(comparison: Comparison, table: WideTable) -> str:
    groups = "".join(f'<th colspan="{len(METRICS)}" scope="colgroup">{escape(g.title)}</th>' for g in table.groups)
    metrics = "".join(f'<th scope="col">{METRIC_NAMES[metric]}</th>' for _ in table.groups for metric in METRICS)
    body = "\n".join(
        f'<tr><th scope="row">{escape(comparison.classifier_name(classifier))}</th>{"".join(map(_td, cells))}</tr>'
        for classifier, cells in table.rows
    )
    legend = escape(" ".join(legend_of(comparison, table)))
    return (
        f"<table>\n<caption>{escape(title_of(table.block))}</caption>\n"
        f'<thead><tr><td></td>{groups}</tr>\n<tr><th scope="col">method</th>{metrics}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>\n<p><small>{legend}</small></p>"
    )


def _td(cell: Cell | None) -> str:
    if cell is None:
        return "<td>–</td>"
    mean = f"<b>{cell.mean_text}</b>" if cell.best else cell.mean_text
    return f"<td>{mean}{f'<small> {cell.margin}</small>' if cell.margin else ''}</td>"
