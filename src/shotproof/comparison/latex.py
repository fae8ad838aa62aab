"""A comparison as LaTeX: one booktabs table per design."""

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

_NARROW = 6  # columns that fit into one of two columns of text
_ESCAPED = {
    **{character: rf"\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": "$<$", ">": "$>$", "±": r"$\pm$", "[": "{[}", "]": "{]}", '"': "''"},
}


def to_latex(comparison: Comparison) -> str:
    """One table per design, and of detectors and data sets where there are several; with `\\usepackage{booktabs}`.

    Each task set and each gap has the columns Acc and wAcc: the mean, and the half-width of the first interval. In bold
    if none is conclusively better under this interval; the caption says so.

    Returns:
        LaTeX, ready for `\\input`.
    """
    written = []
    for block in comparison.blocks:
        written.append(_design_table(comparison, wide_table(comparison, block)))
        if any(one.is_told for one in block.detectors):
            written.append(_detector_table(block))
    shown = (one for one in comparison.data_sets if one.mean.quantity in ("accuracy", "gap", "skill_lost"))
    written += [_data_set_table(comparison, one) for one in shown]
    return "\n".join(written)


def _design_table(comparison: Comparison, table: WideTable) -> str:
    several = len(comparison.encoders) > 1
    names = ["Encoder", "Method"] if several else ["Method"]
    heading = [*[""] * len(names), *(rf"\multicolumn{{2}}{{c}}{{{_group_name(group)}}}" for group in table.groups)]
    starts = range(len(names) + 1, len(names) + 1 + 2 * len(table.groups), 2)
    rules = "".join(rf"\cmidrule(lr){{{start}-{start + 1}}}" for start in starts)
    metrics = [METRIC_NAMES[metric] for _ in table.groups for metric in METRICS]
    body = []
    for place, (classifier, cells) in enumerate(table.rows):
        before = table.rows[place - 1][0].encoder if place else None
        if several and before not in (None, classifier.encoder):
            body.append(r"\midrule")
        encoder = "" if before == classifier.encoder else escape(comparison.encoder_names[classifier.encoder])
        named = [encoder, escape(classifier.method)] if several else [escape(classifier.method)]
        body.append(_line([*named, *map(_text, cells)]))
    lines = [_line(heading), rules, _line([*names, *metrics]), r"\midrule", *body]
    caption = " ".join([f"{title_of(table.block)}.", *legend_of(comparison, table)])
    return _table("l" * len(names) + "c" * len(metrics), lines, caption, comparison.design_name(table.block.design))


def _data_set_table(comparison: Comparison, across: AcrossDataSets) -> str:
    """One row per data set, one column per classifier, by the comparison's metric, and the mean below."""
    metric, covers = comparison.metric, comparison.first_covers
    classifiers = [row.classifier for row in across.mean.rows]
    body = []
    for name, group in across.rows:
        best = best_of(group, metric, covers)
        body.append(_line([escape(name), *(_text(cell_of(group, metric, best, one, covers)) for one in classifiers)]))
    names = [escape(comparison.classifier_name(one)) for one in classifiers]
    lines = [_line(["Data set", *names]), r"\midrule", *body[:-1], r"\midrule", body[-1]]
    caption = (
        f"{across.name}, {METRIC_NAMES[metric]} in percent by data set and the mean over them, of equal weight. "
        f"± is the half-width of the {100 * comparison.level:.4g}% interval '{covers}', for these data sets and not "
        "for others. Bold: none is conclusively better, by paired tests."
    )
    return _table("l" + "c" * len(names), lines, caption, f"data sets {across.name}")


def _detector_table(block: Block) -> str:
    heading = ["Sampler", "Detectors", "Spearman", "First by second", "Second by first"]
    body = []
    for one in (each for each in block.detectors if each.is_told):
        accuracy = ["--" if one.accuracy is None else f"{value:.1f}" for value in one.accuracy or (0.0, 0.0)]
        correlation = "--" if one.correlation != one.correlation else f"{one.correlation:.2f}"
        body.append(_line([escape(one.sampler), escape(", ".join(one.detectors)), correlation, *accuracy]))
    caption = (
        f"{title_of(block)}. Two detectors' attributes in one sampler: Spearman's correlation between the orders of "
        "wAcc that they give, and the detection accuracy of each with the other taken for true, in percent."
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


def _text(cell: Cell | None) -> str:
    """E.g. `\\textbf{58.3} {\\scriptsize$\\pm$0.4 (0.2)}`."""
    if cell is None:
        return "--"
    mean, margin = cell.mean_text.replace("-", "$-$"), escape(cell.margin)
    return (rf"\textbf{{{mean}}}" if cell.best else mean) + (rf" {{\scriptsize{margin}}}" if margin else "")


def escape(text: str) -> str:
    """Write plain text as LaTeX prints it, on one line.

    Example:
        >>> escape("50% of a_b")
        '50\\\\% of a\\\\_b'
    """
    return "".join(_ESCAPED.get(character, character) for character in printable(text))
