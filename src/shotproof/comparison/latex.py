"""Comparison as LaTeX: one booktabs table per design."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import METRIC_NAMES
from shotproof.comparison.wide import Cell, WideTable, best_of, cell_of, legend_of, title_of, wide_table
from shotproof.core.printable import printable
from shotproof.results.evaluated import METRICS
from shotproof.stats.block import Block, Group
from shotproof.stats.data_sets import AcrossDataSets

_NARROW = 6  # columns of a table that fit into one column of a two-column page
_ESCAPED = {
    **{character: rf"\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": "$<$", ">": "$>$", "±": r"$\pm$", "[": "{[}", "]": "{]}", '"': "''"},
}


def to_latex(comparison: Comparison) -> str:
    """Write one table per design, and tables of detectors and data sets if there are several.

    The tables need `\\usepackage{booktabs}`. Each task set and each gap has the columns Acc and wAcc: the mean and the
    half-width of the first interval, in bold if no other is conclusively better under it, as the caption explains.

    Returns:
        LaTeX, ready for `\\input`.
    """
    tables = []
    for block in comparison.blocks:
        tables.append(_design_table(comparison, wide_table(comparison, block)))
        if any(agreement.has_result for agreement in block.detectors):
            tables.append(_detector_table(block))
    quantities = ("accuracy", "gap", "skill_lost")
    across_sets = (across for across in comparison.data_sets if across.mean.quantity in quantities)
    tables += [_data_set_table(comparison, across) for across in across_sets]
    return "\n".join(tables)


def _design_table(comparison: Comparison, table: WideTable) -> str:
    several = len(comparison.encoders) > 1
    names = ["Encoder", "Method"] if several else ["Method"]
    heading = [*[""] * len(names), *(rf"\multicolumn{{2}}{{c}}{{{_group_name(group)}}}" for group in table.groups)]
    starts = range(len(names) + 1, len(names) + 1 + 2 * len(table.groups), 2)
    rules = "".join(rf"\cmidrule(lr){{{start}-{start + 1}}}" for start in starts)
    metrics = [METRIC_NAMES[metric] for _ in table.groups for metric in METRICS]
    body = []
    for index, (classifier, cells) in enumerate(table.rows):
        previous = table.rows[index - 1][0].encoder if index else None
        if several and previous not in (None, classifier.encoder):
            body.append(r"\midrule")
        encoder = "" if previous == classifier.encoder else escape(comparison.encoder_names[classifier.encoder])
        name_cells = [encoder, escape(classifier.method)] if several else [escape(classifier.method)]
        body.append(_line([*name_cells, *map(_format_cell, cells)]))
    lines = [_line(heading), rules, _line([*names, *metrics]), r"\midrule", *body]
    caption = " ".join([f"{title_of(table.block)}.", *legend_of(comparison, table)])
    return _table("l" * len(names) + "c" * len(metrics), lines, caption, comparison.design_name(table.block.design))


def _data_set_table(comparison: Comparison, across: AcrossDataSets) -> str:
    """Write one row per data set and one column per classifier, by the comparison's metric, with the mean below."""
    metric, interval_name = comparison.metric, comparison.first_interval_name
    classifiers = [row.classifier for row in across.mean.rows]
    body = []
    for name, group in across.rows:
        best = best_of(group, metric, interval_name)
        cells = [cell_of(group, metric, best, classifier, interval_name) for classifier in classifiers]
        body.append(_line([escape(name), *map(_format_cell, cells)]))
    names = [escape(comparison.classifier_name(classifier)) for classifier in classifiers]
    lines = [_line(["Data set", *names]), r"\midrule", *body[:-1], r"\midrule", body[-1]]
    caption = (
        f"{across.name}, {METRIC_NAMES[metric]} in percent by data set, and their mean with equal weights. "
        f"± is the half-width of the {100 * comparison.level:.4g}% interval '{interval_name}', for these data sets and "
        "not for others. Bold: no other is conclusively better, by paired tests."
    )
    return _table("l" + "c" * len(names), lines, caption, f"data sets {across.name}")


def _detector_table(block: Block) -> str:
    heading = ["Sampler", "Detectors", "Spearman", "First by second", "Second by first"]
    body = []
    for agreement in (detectors for detectors in block.detectors if detectors.has_result):
        accuracy = [
            "--" if agreement.accuracy is None else f"{value:.1f}" for value in agreement.accuracy or (0.0, 0.0)
        ]
        is_undefined = agreement.correlation != agreement.correlation
        correlation = "--" if is_undefined else f"{agreement.correlation:.2f}"
        names = escape(", ".join(agreement.detectors))
        body.append(_line([escape(agreement.sampler), names, correlation, *accuracy]))
    caption = (
        f"{title_of(block)}. One sampler with the attributes of two detectors: Spearman's correlation between the "
        "resulting wAcc, and the detection accuracy of each with the other as ground truth, in percent."
    )
    return _table("llccc", [_line(heading), r"\midrule", *body], caption, f"detectors {title_of(block)}")


def _table(columns: str, lines: Sequence[str], caption: str, label: str) -> str:
    wide = len(columns) > _NARROW
    environment = "table*" if wide else "table"
    return "\n".join(
        [
            rf"\begin{{{environment}}}[t]",
            r"\centering",
            *([r"\small", r"\setlength{\tabcolsep}{3pt}"] if wide else []),
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', label.lower()).strip('-')}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\end{{{environment}}}",
            "",
        ]
    )


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _group_name(group: Group) -> str:
    return escape(group.title).replace(" - ", " $-$ ")


def _format_cell(cell: Cell | None) -> str:
    """Write a cell, e.g. `\\textbf{58.3} {\\scriptsize$\\pm$0.4 (0.2)}`."""
    if cell is None:
        return "--"
    mean, margin = cell.mean_text.replace("-", "$-$"), escape(cell.margin)
    return (rf"\textbf{{{mean}}}" if cell.best else mean) + (rf" {{\scriptsize{margin}}}" if margin else "")


def escape(text: str) -> str:
    """Escape plain text for LaTeX, on one line.

    Example:
        >>> escape("50% of a_b")
        '50\\\\% of a\\\\_b'
    """
    return "".join(_ESCAPED.get(character, character) for character in printable(text))
