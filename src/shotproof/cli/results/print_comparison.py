"""Comparisons and cards on the terminal, printed from the rows of their tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shotproof.cli.console import print_table, say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.comparison.card import Card
    from shotproof.comparison.change_tables import ChangeTable
    from shotproof.comparison.comparison import Comparison
    from shotproof.stats.intervals import Interval

Row = dict[str, Any]

_DESIGN = ("data_set", "split", "way", "shot", "query", "dial")
_SET = (*_DESIGN, "tasks", "reference")
_QUANTITIES = {
    **{"accuracy": "", "gap": "gap, ", "placebo": "gap of the placebo, ", "excess": "gap beyond the placebo, "},
    "skill_lost": "skill lost, ",
}


def print_comparison(comparison: Comparison, *, brief: bool = False) -> None:
    """Print a comparison: losses, all numbers and pairs, and the conclusions in sentences.

    Args:
        comparison: comparison to print
        brief: whether to print only the losses, with the first interval, and the sentences
    """
    from shotproof.comparison.change_tables import change_tables
    from shotproof.comparison.sentences import interval_sentences
    from shotproof.comparison.wide import title_of

    # Placebos are only shown in the gaps beyond them.
    shown_tasks = {group.label for block in comparison.blocks for group in block.measured}
    estimates = [row for row in comparison.estimates.to_pylist() if row["tasks"] in shown_tasks]
    pairs = [
        row
        for row in comparison.pairs.to_pylist()
        if row["tasks"] in shown_tasks and row["metric"] == comparison.metric
    ]
    names = {_key(vars(design), _DESIGN): comparison.design_name(design) for design in comparison.designs}
    titles = {_key(vars(block.design), _DESIGN): title_of(block) for block in comparison.blocks}
    changed = {_key(vars(table.design), _DESIGN): table for table in change_tables(comparison)}
    for design, rows in _grouped(estimates, _DESIGN):
        table = changed.get(design)
        in_table = set() if table is None else {row.label for row in table.rows if row.reference}
        _print_losses(comparison, names[design], [row for row in rows if row["tasks"] not in in_table])
        if table is not None:
            _print_changes(comparison, names[design], table)
        if not brief:
            _print_numbers(comparison, titles[design], rows)
    if not brief:
        _print_pairs(comparison, pairs, names)
        _print_triples(comparison, names)
    _print_data_sets(comparison)
    _print_detectors(comparison, names)
    if not brief:
        _print_intervals(comparison, [*estimates, *pairs])
    _print_sentences(comparison)
    for sentence in interval_sentences(comparison):
        say(sentence)


def print_card(card: Card, comparison: Comparison | None = None) -> None:
    """Print a card: one row per axis, and the conclusions in sentences.

    Args:
        card: card to print
        comparison: comparison that the card was built from, to name the tasks that lack an interval
    """
    from shotproof.comparison.card_remedies import remedy_sentence
    from shotproof.comparison.numbers import level
    from shotproof.comparison.sentences import interval_sentences

    def show(number: Interval | None) -> str:
        if number is None:
            return "-"
        return _format_number({**vars(number), "interval": number.covers}, card.covers)

    names_references = card.has_other_references
    rows = [
        [
            axis.name,
            *([axis.reference.sampler if axis.reference else ""] if names_references else []),
            *(show(axis.number("accuracy", metric)) for metric in ("acc", "wacc")),
            *(show(axis.number(quantity, card.metric)) for quantity in ("gap", "skill_lost")),
            *(str(axis.rank[by]) if by in axis.rank else "-" for by in ("accuracy", "skill_lost")),
        ]
        for axis in card.axes
    ]
    against = ["against"] if names_references else []
    columns = ["axis", *against, "Acc", "wAcc", "gap", "skill lost", "rank by Acc", "by skill lost"]
    title = f"{card.title}: percent, {level(card.level)} {card.covers} interval"
    print_table(title, columns, rows, left=1 + len(against))
    say()
    remedies = [remedy_sentence(card.remedies)] if card.remedies else []
    for sentence in (*remedies, *card.verdict, *(f"{note}." for note in card.notes)):
        say(sentence)
    if card.quick:
        say("This is a quick card, with a tenth of the tasks: its intervals are wide.")
    for sentence in interval_sentences(comparison) if comparison else []:
        say(sentence)


def _print_losses(comparison: Comparison, design: str, rows: Sequence[Row]) -> None:
    """Print one table per task set with a reference or on its own: one row per classifier."""
    from shotproof.comparison.numbers import METRIC_NAMES, level

    losses = dict.fromkeys((row["reference"], row["tasks"]) for row in rows if row["reference"])
    compared = {label for pair in losses for label in pair}
    alone = dict.fromkeys((None, row["tasks"]) for row in rows if row["tasks"] not in compared)
    first = comparison.first_interval_name
    for reference, label in (*losses, *alone):
        sides = [side for side in (reference, label) if side]
        keys = [(metric, "accuracy", None, side) for metric in METRIC_NAMES for side in sides]
        columns = [f"{METRIC_NAMES[metric]} {side}" for metric, _, _, side in keys]
        if reference:
            for quantity, name in (("gap", "gap in"), ("skill_lost", "skill lost in")):
                keys += [(metric, quantity, reference, label) for metric in METRIC_NAMES]
                columns += [f"{name} {METRIC_NAMES[metric]}" for metric in METRIC_NAMES]
        numbers: dict[Any, list[Row]] = {}
        for row in rows:
            key = (row["metric"], row["quantity"], row["reference"], row["tasks"])
            numbers.setdefault((f"{row['method']} on {row['encoder']}", key), []).append(row)
        names = dict.fromkeys(name for name, key in numbers if key == keys[len(sides) - 1])
        cells = [[name, *(_first_number(numbers.get((name, key), []), first) for key in keys)] for name in names]
        title = f"{design} tasks: percent, gaps in points, {level(comparison.level)} {first} interval"
        print_table(title if reference else title.replace(" gaps in points,", ""), ["classifier", *columns], cells)
        say()


def _print_changes(comparison: Comparison, design: str, table: ChangeTable) -> None:
    """Print one table of all changed sets: a row per change, two columns per classifier."""
    from shotproof.comparison.numbers import METRIC_NAMES, level, percent

    metric, first = METRIC_NAMES[comparison.metric], comparison.first_interval_name
    names = [str(comparison.classifier_name(classifier)) for classifier in table.classifiers]
    columns = [column for name in names for column in (f"{metric} {name}", "skill lost")]
    lines = []
    for row in table.rows:
        cells = [row.change, "" if row.severity is None else str(row.severity), row.reference or ""]
        for cell in row.cells:
            accuracy, lost = cell.accuracy, cell.skill_lost
            cells.append("-" if accuracy is None else percent(accuracy.mean))
            empty = "-" if row.reference else ""
            cells.append(empty if lost is None else _format_number({**vars(lost), "interval": lost.covers}, first))
        lines.append(cells)
    title = f"{design} tasks with one thing changed: percent, {level(comparison.level)} {first} interval"
    print_table(title, ["change", "severity", "against", *columns], lines, left=3)
    say()


def _print_numbers(comparison: Comparison, title: str, rows: Sequence[Row]) -> None:
    """Print all numbers of a design with all intervals and ranks: one row per task set, quantity and classifier."""
    from shotproof.comparison.numbers import METRIC_NAMES, percent

    has_deviations = any(row["deviation"] is not None for row in rows)
    lines = []
    for _, group in _grouped(rows, ("quantity", *_SET)):
        by_classifier = [numbers for _, numbers in _grouped(group, ("classifier",))]
        for numbers in sorted(by_classifier, key=lambda numbers: -(_mean(numbers[0]) or 0.0)):
            cells = [_title(numbers[0]), numbers[0]["classifier"], _rank(numbers, comparison.metric)]
            for metric in METRIC_NAMES:
                metric_rows = [row for row in numbers if row["metric"] == metric]
                means = [row["mean"] for row in metric_rows if row["mean"] is not None]
                cells.append(percent(means[0]) if means else "n/a")
                cells += [_format_deviation(metric_rows[0])] if has_deviations else []
                cells += [_format_bounds(row) for row in metric_rows]
            lines.append(cells)
    columns = ["tasks", "classifier", f"rank by {METRIC_NAMES[comparison.metric]}"]
    for name in METRIC_NAMES.values():
        columns += [name, *(["sd over seeds"] if has_deviations else []), *comparison.interval_names]
    counts = {row["tasks"]: _count(row) for row in rows if row["quantity"] == "accuracy"}
    say(
        f"{title}: {', '.join(counts.values())}", "Every number; accuracy and skill lost in percent, gaps in points", ""
    )
    print_table("", columns, lines, left=2)
    say()


def _print_pairs(comparison: Comparison, rows: Sequence[Row], names: dict[Any, str]) -> None:
    """Print the difference of each pair of classifiers, and the number of conclusive pairs."""
    from shotproof.comparison.numbers import METRIC_NAMES

    for design, design_rows in _grouped([row for row in rows if row["quantity"] != "placebo"], _DESIGN):
        lines = []
        for _, group in _grouped(design_rows, ("quantity", *_SET)):
            title = _title(group[0])
            by_pair = [intervals for _, intervals in _grouped(group, ("a", "b"))]
            for intervals in by_pair:
                mean = intervals[0]["mean"]
                difference = "n/a" if mean is None else f"{round(mean, 2) + 0.0:+.2f}"
                signs = [f"{row['conclusion']} {_format_bounds(row, 2)}" for row in intervals]
                lines.append([title, f"{intervals[0]['a']} - {intervals[0]['b']}", difference, *signs])
            counts = [sum(row["conclusion"] != "0" for row in column) for column in zip(*by_pair, strict=True)]
            lines.append([title, "conclusive", "", *(f"{count} of {len(by_pair)}" for count in counts)])
        say(
            f"{names[design]} tasks, pairs by {METRIC_NAMES[comparison.metric]}: points (skill lost: percent); "
            "+ if the first is higher, - if lower, 0 if not conclusive"
        )
        print_table("", ["tasks", "pair", "difference", *comparison.interval_names], lines, left=2)
        say()
    if comparison.corrected and any(len(group.rows) > 2 for group in comparison.groups):
        say("Conclusions use Holm's correction for the number of pairs; intervals are not corrected.", "")


def _print_triples(comparison: Comparison, names: dict[Any, str]) -> None:
    """Print direct comparisons with and without replacement, and paired ones."""
    from shotproof.comparison.comparison_tables import to_arrow
    from shotproof.comparison.numbers import METRIC_NAMES
    from shotproof.comparison.sentences import fates_sentence

    triples = [group.triples[comparison.metric] for group in comparison.groups if comparison.metric in group.triples]
    rows = [row for row in to_arrow(comparison, "triples").to_pylist() if row["metric"] == comparison.metric]
    for counts, (_, group) in zip(triples, _grouped(rows, _SET), strict=True):
        lines = []
        for row in group:
            signs = [row[name] for name in ("closed", "open", "paired", "at_best_query")][: len(counts.names)]
            correlation = "n/a" if row["correlation"] is None else f"{row['correlation']:.2f}"
            cell = f"{correlation}{' inverted' if row['inverted'] else ''}"
            lines.append([f"{row['a']} - {row['b']}", *signs, cell])
        lines.append(["conclusive", *(f"{count} of {len(group)}" for count in counts.conclusive.values()), ""])
        say(
            f"{names[_key(group[0], _DESIGN)]} tasks, {group[0]['tasks']}: direct and paired comparisons by "
            f"{METRIC_NAMES[comparison.metric]}, closed (tasks with replacement) and open ({counts.tasks} without); "
            "not corrected for the number of pairs; r: Pearson's between task accuracies"
        )
        print_table("", ["pair", *counts.names, "r"], lines)
        say(fates_sentence([counts]), "")
    if len(triples) > 1:
        say(f"Over all {len(triples)} sets of random tasks. {fates_sentence(triples)}", "")


def _print_data_sets(comparison: Comparison) -> None:
    """Print one table per quantity that several data sets have: a row per data set, a column per classifier."""
    from shotproof.comparison.comparison_tables import to_arrow
    from shotproof.comparison.numbers import METRIC_NAMES, percent

    metric, first = comparison.metric, comparison.first_interval_name
    rows = [
        row
        for row in to_arrow(comparison, "data_sets").to_pylist()
        if row["metric"] == metric and row["interval"] == first and row["quantity"] in ("accuracy", "gap", "skill_lost")
    ]
    sizes = ("quantity", "tasks", "reference", "way", "shot", "query", "dial")
    for (quantity, *_), group in _grouped(rows, sizes):
        sets = [set_rows for _, set_rows in _grouped(group, ("data_set",))]
        classifiers = [row["classifier"] for row in sets[-1]]  # the mean has those that were evaluated on all data sets
        lines = []
        for set_rows in sets:
            by_classifier = {row["classifier"]: row for row in set_rows}
            cells = []
            for name in classifiers:
                row = by_classifier[name]
                half = "" if row["refused"] else f" ±{(row['high'] - row['low']) / 2:.1f}"
                cells.append(f"{'n/a' if row['mean'] is None else percent(row['mean'])}{half}")
            lines.append([set_rows[0]["data_set"], *cells])
        if quantity != "gap":
            lines.append(["rank by the mean", *(_rank([row], metric) for row in sets[-1])])
        size = f"{group[0]['way']}-way {group[0]['shot']}-shot"
        unit = "points" if quantity == "gap" else "percent"
        say(
            f"Over data sets, {_title(group[0])}, {size}: {METRIC_NAMES[metric]}, {unit}; ±: {first} interval; the "
            "mean is over these data sets, and its interval does not cover others"
        )
        print_table("", ["data set", *classifiers], lines)
        say()


def _print_detectors(comparison: Comparison, names: dict[Any, str]) -> None:
    """Print how well detectors agree, if one sampler used the attributes of several."""
    from shotproof.comparison.comparison_tables import to_arrow
    from shotproof.comparison.numbers import percent

    for row in to_arrow(comparison, "detectors").to_pylist():
        facts = []
        if row["correlation"] is not None:
            facts.append(f"Spearman's correlation {row['correlation']:.2f} over {row['classifiers']} classifiers")
        if row["first_accuracy"] is not None:
            shares = " and ".join(percent(row[name]) for name in ("first_accuracy", "second_accuracy"))
            facts.append(f"detection accuracy {shares}%")
        if facts:
            pair = f"{row['sampler']} with {row['first']} and with {row['second']}"
            say(f"{names[_key(row, _DESIGN)]} tasks, {pair}: {', '.join(facts)}.")


def _print_intervals(comparison: Comparison, rows: Sequence[Row]) -> None:
    """Print what the intervals cover, and why some are missing."""
    from shotproof.comparison.numbers import level
    from shotproof.core.nouns import nouns
    from shotproof.stats.intervals import meanings

    interval_meanings = meanings(comparison.medium)
    say(f"{level(comparison.level)} intervals")
    for name in comparison.interval_names:
        say(f"  {name}: {comparison.refused.get(name, interval_meanings[name])}")
    reasons = dict.fromkeys((row["interval"], row["refused"]) for row in rows if row["refused"])
    for name, reason in reasons:  # once each: many task sets have the same
        if comparison.refused.get(name) != reason:
            say(f"n/a: {name}: {reason}")
    if comparison.interval_names == ("sampler",):
        say(
            f"The sampler interval does not cover new {nouns(comparison.medium)} or new classes. To cover "
            "these, use --interval images --interval classes, and give the run folder, or add the task sets, the "
            "catalog and the features to the results"
        )
    say()


def _print_sentences(comparison: Comparison) -> None:
    """Print a summary with advice, the conclusions in at most five sentences, notes, and definitions of terms."""
    from shotproof.comparison.summary import terms

    summary = comparison.summary()
    if summary:
        say(" ".join(summary), "")
    for sentence in comparison.verdict():
        say(sentence)
    for note in comparison.notes:
        say(f"{note}.")
    for term in terms(comparison):
        say(f"{term.word}: {term.meaning}.")


def _key(row: Any, columns: Iterable[str]) -> tuple[Any, ...]:
    """Return the values of a row in some columns."""
    return tuple(row[name] for name in columns)


def _grouped(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yield the rows grouped by some columns, in the order of the first row of each group."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(row, columns), []).append(row)
    yield from groups.items()


def _title(row: Row) -> str:
    """Return the quantity and the tasks of a row: `random`, or `skill lost, random - fewstab`."""
    label = f"{row['reference']} - {row['tasks']}" if row["reference"] else row["tasks"]
    return f"{_QUANTITIES[row['quantity']]}{label}"


def _rank(rows: Sequence[Row], metric: str) -> str:
    """Format the ranks by the first interval that separates classifiers, as a range; empty for quantities without."""
    row = next((row for row in rows if row["metric"] == metric and row["rank_best"] is not None), None)
    if row is not None:
        is_single = row["rank_best"] == row["rank_worst"]
        return f"{row['rank_best']}" if is_single else f"{row['rank_best']}–{row['rank_worst']}"
    return "n/a" if rows[0]["quantity"] in ("accuracy", "skill_lost") else ""


def _first_number(rows: Sequence[Row], usual: str) -> str:
    """Format the number with the first available interval, or with the reason why there is none."""
    if not rows:
        return "-"
    return _format_number(next((row for row in rows if not row["refused"]), rows[0]), usual)


def _format_number(row: Row, usual: str) -> str:
    """Format a number, with bounds unless it is an accuracy in a comparison, and the name of an unusual interval."""
    from shotproof.comparison.numbers import percent

    if (mean := _mean(row)) is None:
        return (row["refused"] or "-").split(":")[0]
    if row.get("quantity") == "accuracy":
        return percent(mean)
    interval_name = "" if row["interval"] == usual or row["refused"] else f" {row['interval']}"
    return f"{percent(mean)} {'[no interval]' if row['refused'] else _format_bounds(row)}{interval_name}"


def _mean(row: Row) -> float | None:
    """Return the mean of a row, or None if it is missing or not a number."""
    mean: float | None = row["mean"]
    return None if mean is None or math.isnan(mean) else mean


def _format_bounds(row: Row, digits: int = 1) -> str:
    """Format the bounds of an interval."""
    if row["refused"] or row["low"] is None or row["high"] is None:
        return "n/a"
    low, high = (f"{round(end, digits) + 0.0:.{digits}f}" for end in (row["low"], row["high"]))
    return f"[{low}, {high}]"


def _count(row: Row) -> str:
    """Return the number of tasks: `60 random tasks`, or `40 random tasks of 2 seeds`."""
    seeds = f" of {len(row['seeds'])} seeds" if len(row["seeds"]) > 1 else ""
    return f"{counted(row['task_count'], row['tasks'] + ' task')}{seeds}"


def _format_deviation(row: Row) -> str:
    """Format the standard deviation over seeds, if there is one."""
    return "" if row["deviation"] is None else f"{row['deviation']:.1f}"
