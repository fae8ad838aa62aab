"""A comparison as HTML tables, for notebooks."""

from __future__ import annotations

from html import escape

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.comparison.wide import Cell, WideTable, legend_of, title_of, wide_table
from shotproof.results.evaluated import METRICS


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
