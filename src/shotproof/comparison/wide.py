"""A comparison as a reader sees it on paper: one table per design, one row per classifier, task sets side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.core.nouns import counted
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.stats.block import Block, Group
from shotproof.stats.intervals import Covers, meanings


@dataclass(frozen=True)
class Cell:
    """A mean under one interval, with its half-width and its standard deviation over seeds where there are any.

    best: whether none is conclusively higher (of what is lost, lower)
    """

    mean: float
    half_width: float | None
    deviation: float | None
    best: bool

    @property
    def mean_text(self) -> str:
        """The mean with one decimal, and no minus before a zero; a dash where there is no number."""
        if math.isnan(self.mean):
            return "–"
        return f"{round(self.mean, 1) + 0.0:.1f}"

    @property
    def margin(self) -> str:
        """E.g. `±0.4 (0.2)`: the half-width and the deviation, where there are any."""
        half = [] if self.half_width is None else [f"±{self.half_width:.1f}"]
        return " ".join(half if self.deviation is None else [*half, f"({self.deviation:.1f})"])


@dataclass(frozen=True)
class WideTable:
    """One design; each group has a column per metric, and a cell is None where a classifier was not evaluated."""

    block: Block
    groups: list[Group]
    rows: list[tuple[Classifier, list[Cell | None]]]


def wide_table(comparison: Comparison, block: Block) -> WideTable:
    """All task sets of a design, and what is lost between them in points and in skill, under the first interval."""
    covers = comparison.first_covers
    groups = [*block.measured, *(group for loss in block.losses for group in (loss.gap, loss.skill))]
    columns = [(group, metric, best_of(group, metric, covers)) for group in groups for metric in METRICS]
    rows = [(one, [cell_of(*column, one, covers) for column in columns]) for one in block.classifiers]
    return WideTable(block, groups, rows)


def best_of(group: Group, metric: Metric, covers: Covers) -> set[Classifier]:
    """The classifiers that none is conclusively better than; of what is lost, the least is best.

    None where there is nothing to choose from: a single classifier, or no interval for any pair.
    """
    pairs = group.pairs[metric, covers]
    if all(pair.interval.refused for pair in pairs):
        return set()
    is_lost = group.against is not None
    beaten = {pair.b if (pair.conclusion == "+") != is_lost else pair.a for pair in pairs if pair.conclusion != "0"}
    numbered = [row for row in group.rows if not math.isnan(row.intervals[metric][covers].mean)]
    return {row.classifier for row in numbered if row.classifier not in beaten}


def title_of(block: Block) -> str:
    """E.g. `birds, 5-way 1-shot, 15 queries per class, split test`."""
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
    """What a reader must know of the table, in sentences."""
    name = comparison.first_covers
    covered = meanings(comparison.medium)[name]
    block, deviates = table.block, any(cell and cell.deviation is not None for _, cells in table.rows for cell in cells)
    counts = ", ".join(_tasks(group) for group in block.measured)
    units = (
        "in percent, gaps in points, skill lost in percent of the accuracy above chance" if block.gaps else "in percent"
    )
    told = [
        f"Tasks: {counts}.",
        f"Accuracy (Acc) and accuracy on the worst class of a task (wAcc) {units}.",
        f"No interval: {block.refused[name]}."
        if name in block.refused
        else f"± is the half-width of the {100 * comparison.level:.4g}% interval '{name}'. It covers: {covered}",
    ]
    if deviates:
        told.append("In parentheses: the standard deviation over seeds.")
    if any(cell and cell.best for _, cells in table.rows for cell in cells):
        correction = ", corrected after Holm" if comparison.corrected else ""
        better = "higher (of what is lost, lower)" if block.gaps else "higher"
        told.append(f"Bold: none is conclusively {better} under this interval, by paired tests{correction}.")
    return told


def cell_of(group: Group, metric: Metric, best: set[Classifier], classifier: Classifier, covers: Covers) -> Cell | None:
    """A classifier in one column; None where it was not evaluated."""
    row = group.row(classifier)
    if row is None:
        return None
    interval = row.intervals[metric][covers]
    half_width = None if interval.refused else interval.half_width
    return Cell(interval.mean, half_width, row.spread(metric), classifier in best)


def _tasks(group: Group) -> str:
    seeds = f", {len(group.seeds)} seeds" if len(group.seeds) > 1 else ""
    return f"{group.label} ({group.tasks}{seeds})"


def to_html(comparison: Comparison) -> str:
    """One table per design: every classifier on every task set, with its gaps; notes below."""
    written = [_table(comparison, wide_table(comparison, block)) for block in comparison.blocks]
    written += [f"<p>{escape(note)}</p>" for note in comparison.notes]
    return "\n".join(written)


def _table(comparison: Comparison, table: WideTable) -> str:
    groups = "".join(f'<th colspan="{len(METRICS)}" scope="colgroup">{escape(g.title)}</th>' for g in table.groups)
    metrics = "".join(f'<th scope="col">{METRIC_NAMES[metric]}</th>' for _ in table.groups for metric in METRICS)
    body = "\n".join(
        f'<tr><th scope="row">{escape(comparison.classifier_name(classifier))}</th>{"".join(map(_cell, cells))}</tr>'
        for classifier, cells in table.rows
    )
    told = escape(" ".join(legend_of(comparison, table)))
    return (
        f"<table>\n<caption>{escape(title_of(table.block))}</caption>\n"
        f'<thead><tr><td></td>{groups}</tr>\n<tr><th scope="col">method</th>{metrics}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>\n<p><small>{told}</small></p>"
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td>–</td>"
    mean = f"<b>{cell.mean_text}</b>" if cell.best else cell.mean_text
    return f"<td>{mean}{f'<small> {cell.margin}</small>' if cell.margin else ''}</td>"
