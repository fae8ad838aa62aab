"""A comparison on the terminal, from the rows of its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shotproof.cli.console import print_table, say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.comparison.card import Card
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
    """Print a comparison: what each classifier loses, every number and pair, and what was found in sentences.

    Args:
        comparison: what is printed
        brief: only what is lost, under the first interval, and the sentences
    """
    from shotproof.comparison.sentences import interval_sentences
    from shotproof.comparison.wide import title_of

    # Placebos are measured for what is lost beyond them, and are no tasks that anybody asks about.
    asked = {group.label for block in comparison.blocks for group in block.measured}
    estimates = [row for row in comparison.estimates.to_pylist() if row["tasks"] in asked]
    pairs = [
        row for row in comparison.pairs.to_pylist() if row["tasks"] in asked and row["metric"] == comparison.metric
    ]
    names = {_key(vars(design), _DESIGN): comparison.design_name(design) for design in comparison.designs}
    titles = {_key(vars(block.design), _DESIGN): title_of(block) for block in comparison.blocks}
    for design, rows in _grouped(estimates, _DESIGN):
        _print_losses(comparison, names[design], rows)
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
    """Print a card, one row per axis, and what was found in sentences.

    Args:
        card: what is printed
        comparison: what it was made from, to say on which tasks an interval could not be given
    """
    from shotproof.comparison.numbers import level
    from shotproof.comparison.sentences import interval_sentences

    def shown(number: Interval | None) -> str:
        if number is None:
            return "-"
        return _number({**vars(number), "interval": number.covers}, card.covers)

    rows = [
        [
            axis.name,
            *(shown(axis.number("accuracy", metric)) for metric in ("acc", "wacc")),
            *(shown(axis.number(quantity, card.metric)) for quantity in ("gap", "skill_lost")),
            *(str(axis.rank[by]) if by in axis.rank else "-" for by in ("accuracy", "skill_lost")),
        ]
        for axis in card.axes
    ]
    columns = ["axis", "Acc", "wAcc", "gap", "skill lost", "rank by Acc", "by skill lost"]
    print_table(f"{card.title}: percent, {level(card.level)} {card.covers} interval", columns, rows)
    say()
    for sentence in (*card.verdict, *(f"{note}." for note in card.notes)):
        say(sentence)
    if card.quick:
        say("This is a quick card, of a tenth of the tasks: its intervals are wide.")
    for sentence in interval_sentences(comparison) if comparison else []:
        say(sentence)


def _print_losses(comparison: Comparison, design: str, rows: Sequence[Row]) -> None:
    """Print one table per task set that is measured against another, or stands alone: one row per classifier."""
    from shotproof.comparison.numbers import METRIC_NAMES, level

    losses = dict.fromkeys((row["reference"], row["tasks"]) for row in rows if row["reference"])
    compared = {label for pair in losses for label in pair}
    alone = dict.fromkeys((None, row["tasks"]) for row in rows if row["tasks"] not in compared)
    first = comparison.first_covers
    for reference, label in (*losses, *alone):
        sides = [side for side in (reference, label) if side]
        wanted = [(metric, "accuracy", None, side) for metric in METRIC_NAMES for side in sides]
        columns = [f"{METRIC_NAMES[metric]} {side}" for metric, _, _, side in wanted]
        if reference:
            for quantity, name in (("gap", "gap in"), ("skill_lost", "skill lost in")):
                wanted += [(metric, quantity, reference, label) for metric in METRIC_NAMES]
                columns += [f"{name} {METRIC_NAMES[metric]}" for metric in METRIC_NAMES]
        numbers: dict[Any, list[Row]] = {}
        for row in rows:
            place = (row["metric"], row["quantity"], row["reference"], row["tasks"])
            numbers.setdefault((f"{row['method']} on {row['encoder']}", place), []).append(row)
        names = dict.fromkeys(name for name, place in numbers if place == wanted[len(sides) - 1])
        cells = [[name, *(_first(numbers.get((name, place), []), first) for place in wanted)] for name in names]
        title = f"{design} tasks: percent, gaps in points, {level(comparison.level)} {first} interval"
        print_table(title if reference else title.replace(" gaps in points,", ""), ["classifier", *columns], cells)
        say()


def _print_numbers(comparison: Comparison, title: str, rows: Sequence[Row]) -> None:
    """Print every number of a design under every interval, with ranks: one row per task set, quantity, classifier."""
    from shotproof.comparison.numbers import METRIC_NAMES, percent

    deviates = any(row["deviation"] is not None for row in rows)
    lines = []
    for _, group in _grouped(rows, ("quantity", *_SET)):
        by_classifier = [numbers for _, numbers in _grouped(group, ("classifier",))]
        for numbers in sorted(by_classifier, key=lambda numbers: -(_mean(numbers[0]) or 0.0)):
            cells = [_title(numbers[0]), numbers[0]["classifier"], _rank(numbers, comparison.metric)]
            for metric in METRIC_NAMES:
                own = [row for row in numbers if row["metric"] == metric]
                known = next((row for row in own if row["mean"] is not None), own[0])
                cells.append("n/a" if known["mean"] is None else percent(known["mean"]))
                cells += [_deviation(own[0])] if deviates else []
                cells += [_bounds(row) for row in own]
            lines.append(cells)
    columns = ["tasks", "classifier", f"rank by {METRIC_NAMES[comparison.metric]}"]
    for name in METRIC_NAMES.values():
        columns += [name, *(["sd over seeds"] if deviates else []), *comparison.covers]
    counts = {row["tasks"]: _count(row) for row in rows if row["quantity"] == "accuracy"}
    say(
        f"{title}: {', '.join(counts.values())}", "Every number; accuracy and skill lost in percent, gaps in points", ""
    )
    print_table("", columns, lines, left=2)
    say()


def _print_pairs(comparison: Comparison, rows: Sequence[Row], names: dict[Any, str]) -> None:
    from shotproof.comparison.numbers import METRIC_NAMES

    for design, of_design in _grouped([row for row in rows if row["quantity"] != "placebo"], _DESIGN):
        lines = []
        for _, group in _grouped(of_design, ("quantity", *_SET)):
            title = _title(group[0])
            by_pair = [intervals for _, intervals in _grouped(group, ("a", "b"))]
            for intervals in by_pair:
                mean = intervals[0]["mean"]
                difference = "n/a" if mean is None else f"{mean:+.2f}"
                signs = [f"{row['conclusion']} {_bounds(row, 2)}" for row in intervals]
                lines.append([title, f"{intervals[0]['a']} - {intervals[0]['b']}", difference, *signs])
            counts = [sum(row["conclusion"] != "0" for row in of) for of in zip(*by_pair, strict=True)]
            lines.append([title, "conclusive", "", *(f"{count} of {len(by_pair)}" for count in counts)])
        say(
            f"{names[design]} tasks, pairs by {METRIC_NAMES[comparison.metric]}: points, of skill lost percent; "
            "+ the first is higher, - lower, 0 not conclusive"
        )
        print_table("", ["tasks", "pair", "difference", *comparison.covers], lines, left=2)
        say()
    if comparison.corrected and any(len(group.rows) > 2 for group in comparison.groups):
        say("Conclusions are corrected for the number of pairs, after Holm; intervals are of one pair alone.", "")


def _print_triples(comparison: Comparison, names: dict[Any, str]) -> None:
    """Print direct comparisons with and without replacement, and paired ones."""
    from shotproof.comparison.comparison_tables import to_arrow
    from shotproof.comparison.numbers import METRIC_NAMES
    from shotproof.comparison.sentences import fates_of

    triples = [group.triples[comparison.metric] for group in comparison.groups if comparison.metric in group.triples]
    rows = [row for row in to_arrow(comparison, "triples").to_pylist() if row["metric"] == comparison.metric]
    for counts, (_, group) in zip(triples, _grouped(rows, _SET), strict=True):
        lines = []
        for row in group:
            signs = [row[name] for name in ("closed", "open", "paired", "at_best_query")][: len(counts.names)]
            correlation = "n/a" if row["correlation"] is None else f"{row['correlation']:.2f}"
            told = f"{correlation}{' inverted' if row['inverted'] else ''}"
            lines.append([f"{row['a']} - {row['b']}", *signs, told])
        lines.append(["conclusive", *(f"{count} of {len(group)}" for count in counts.conclusive.values()), ""])
        say(
            f"{names[_key(group[0], _DESIGN)]} tasks, {group[0]['tasks']}: direct and paired comparisons by "
            f"{METRIC_NAMES[comparison.metric]}, closed (tasks with replacement) and open ({counts.tasks} without); "
            "not corrected for the number of pairs; r: Pearson's between task accuracies"
        )
        print_table("", ["pair", *counts.names, "r"], lines)
        say(fates_of([counts]), "")
    if len(triples) > 1:
        say(f"Over all {len(triples)} sets of random tasks. {fates_of(triples)}", "")


def _print_data_sets(comparison: Comparison) -> None:
    """Print one table per quantity that several data sets have: a row per data set, a column per classifier."""
    from shotproof.comparison.comparison_tables import to_arrow
    from shotproof.comparison.numbers import METRIC_NAMES, percent

    metric, first = comparison.metric, comparison.first_covers
    rows = [
        row
        for row in to_arrow(comparison, "data_sets").to_pylist()
        if row["metric"] == metric and row["interval"] == first and row["quantity"] in ("accuracy", "gap", "skill_lost")
    ]
    sizes = ("quantity", "tasks", "reference", "way", "shot", "query", "dial")
    for (quantity, *_), group in _grouped(rows, sizes):
        sets = [of_set for _, of_set in _grouped(group, ("data_set",))]
        shown = [row["classifier"] for row in sets[-1]]  # of the mean: those that were evaluated on all
        lines = []
        for of_set in sets:
            known = {row["classifier"]: row for row in of_set}
            cells = []
            for name in shown:
                row = known[name]
                half = "" if row["refused"] else f" ±{(row['high'] - row['low']) / 2:.1f}"
                cells.append(f"{'n/a' if row['mean'] is None else percent(row['mean'])}{half}")
            lines.append([of_set[0]["data_set"], *cells])
        if quantity != "gap":
            lines.append(["rank by the mean", *(_rank([row], metric) for row in sets[-1])])
        size = f"{group[0]['way']}-way {group[0]['shot']}-shot"
        unit = "points" if quantity == "gap" else "percent"
        say(
            f"Over data sets, {_title(group[0])}, {size}: {METRIC_NAMES[metric]}, {unit}; ±: {first} interval, of the "
            "mean over these data sets, not over others"
        )
        print_table("", ["data set", *shown], lines)
        say()


def _print_detectors(comparison: Comparison, names: dict[Any, str]) -> None:
    """Print how well detectors agree, if one sampler was given the attributes of several."""
    from shotproof.comparison.comparison_tables import to_arrow
    from shotproof.comparison.numbers import percent

    for row in to_arrow(comparison, "detectors").to_pylist():
        told = []
        if row["correlation"] is not None:
            told.append(f"Spearman's correlation {row['correlation']:.2f} over {row['classifiers']} classifiers")
        if row["first_accuracy"] is not None:
            shares = " and ".join(percent(row[name]) for name in ("first_accuracy", "second_accuracy"))
            told.append(f"detection accuracy {shares}%")
        if told:
            pair = f"{row['sampler']} with {row['first']} and with {row['second']}"
            say(f"{names[_key(row, _DESIGN)]} tasks, {pair}: {', '.join(told)}.")


def _print_intervals(comparison: Comparison, rows: Sequence[Row]) -> None:
    """Print what the intervals cover, and why some cells have none."""
    from shotproof.comparison.numbers import level
    from shotproof.core.nouns import nouns
    from shotproof.stats.intervals import meanings

    covered = meanings(comparison.medium)
    say(f"{level(comparison.level)} intervals")
    for name in comparison.covers:
        say(f"  {name}: {comparison.refused.get(name, covered[name])}")
    reasons = dict.fromkeys((row["interval"], row["refused"]) for row in rows if row["refused"])
    for name, reason in reasons:  # each once: it is the same for many task sets
        if comparison.refused.get(name) != reason:
            say(f"n/a: {name}: {reason}")
    if comparison.covers == ("sampler",):
        say(
            f"The sampler interval does not cover new {nouns(comparison.medium)} or new classes. For those: "
            "--interval images --interval classes, with a run's folder or with the task sets, the catalog and the "
            "features beside the results"
        )
    say()


def _print_sentences(comparison: Comparison) -> None:
    """Print what to know and do in plain words, what was found in at most five sentences, and what their terms mean."""
    from shotproof.comparison.summary import terms

    in_short = comparison.summary()
    if in_short:
        say(" ".join(in_short), "")
    for sentence in comparison.verdict():
        say(sentence)
    for note in comparison.notes:
        say(f"{note}.")
    for term in terms(comparison):
        say(f"{term.word}: {term.meaning}.")


def _key(row: Any, columns: Iterable[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in columns)


def _grouped(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Give rows that have the same in these columns together, in the order of their first ones."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(row, columns), []).append(row)
    yield from groups.items()


def _title(row: Row) -> str:
    """E.g. `random`, or `skill lost, random - fewstab`."""
    label = f"{row['reference']} - {row['tasks']}" if row["reference"] else row["tasks"]
    return f"{_QUANTITIES[row['quantity']]}{label}"


def _rank(rows: Sequence[Row], metric: str) -> str:
    """The rank under the first interval that tells classifiers apart, as a range; empty if what is lost has none."""
    row = next((row for row in rows if row["metric"] == metric and row["rank_best"] is not None), None)
    if row is not None:
        same = row["rank_best"] == row["rank_worst"]
        return f"{row['rank_best']}" if same else f"{row['rank_best']}–{row['rank_worst']}"
    return "n/a" if rows[0]["quantity"] in ("accuracy", "skill_lost") else ""


def _first(rows: Sequence[Row], usual: str) -> str:
    """Return the number under the first interval that could be given, or else the first with its reason."""
    if not rows:
        return "-"
    return _number(next((row for row in rows if not row["refused"]), rows[0]), usual)


def _number(row: Row, usual: str) -> str:
    """A number, with its bounds if it is a loss or on a card, and the name of its interval unless it is the usual."""
    from shotproof.comparison.numbers import percent

    if (mean := _mean(row)) is None:
        return (row["refused"] or "-").split(":")[0]
    if row.get("quantity") == "accuracy":
        return percent(mean)
    named = "" if row["interval"] == usual or row["refused"] else f" {row['interval']}"
    return f"{percent(mean)} {'[no interval]' if row['refused'] else _bounds(row)}{named}"


def _mean(row: Row) -> float | None:
    mean: float | None = row["mean"]
    return None if mean is None or math.isnan(mean) else mean


def _bounds(row: Row, digits: int = 1) -> str:
    if row["refused"] or row["low"] is None or row["high"] is None:
        return "n/a"
    low, high = (f"{round(end, digits) + 0.0:.{digits}f}" for end in (row["low"], row["high"]))
    return f"[{low}, {high}]"


def _count(row: Row) -> str:
    """E.g. `60 random tasks`, or `40 random tasks of 2 seeds`."""
    seeds = f" of {len(row['seeds'])} seeds" if len(row["seeds"]) > 1 else ""
    return f"{counted(row['task_count'], row['tasks'] + ' task')}{seeds}"


def _deviation(row: Row) -> str:
    return "" if row["deviation"] is None else f"{row['deviation']:.1f}"
