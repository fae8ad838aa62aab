"""`shotproof compare`: classifiers side by side, with intervals that name what they cover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.console import say
from shotproof.cli.results.files import (
    AttributeFiles,
    CatalogFiles,
    FeatureFiles,
    IntervalNames,
    MetricName,
    ResultsFiles,
    TaskFiles,
    Trusted,
    WithPlacebo,
    read_files,
)
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Workers
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.comparison.comparison import Comparison
    from shotproof.stats.block import Group
    from shotproof.stats.data_sets import AcrossDataSets
    from shotproof.stats.intervals import Interval


def compare(
    results: ResultsFiles,
    interval: IntervalNames = None,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    metric: MetricName = "acc",
    holm: Annotated[bool, typer.Option(help="Correct for the number of pairs, after Holm.")] = True,
    placebo: WithPlacebo = True,
    trust: Trusted = False,
    tasks: TaskFiles = None,
    catalog: CatalogFiles = None,
    features: FeatureFiles = None,
    attributes: AttributeFiles = None,
    halvings: Annotated[
        int | None,
        typer.Option(
            min=limits.HALVINGS.least,
            max=limits.HALVINGS.most,
            help="Random halvings of the data. Default: 100, or fewer where that takes long.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, in percent points.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print everything as CSV, in percent points.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print one LaTeX table per design.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Compare classifiers: intervals that name what they cover, ranks as ranges, all pairs, and gaps.

    Example: shotproof compare run/ --interval sampler --interval images
    """
    from shotproof.analysis.compare import compare as compare_classifiers
    from shotproof.cli.console import print_csv, print_json, say_text
    from shotproof.cli.runtime_options import make_runtime
    from shotproof.core.errors import InputError
    from shotproof.results.evaluated import check_metric
    from shotproof.stats.intervals import check_intervals, check_level

    if as_json + as_csv + as_latex > 1:
        raise InputError("--json, --csv and --latex: expected one of them at most")
    # What cannot be is told before any file is read.
    if interval is not None:
        check_intervals(interval)
    check_level(level)
    check_metric(metric)
    inputs = read_files(results, tasks, catalog, features, attributes, halvings=halvings, trust=trust)
    comparison = compare_classifiers(
        inputs,
        intervals=interval,
        level=level,
        metric=metric,
        correct=holm,
        placebo=placebo,
        runtime=make_runtime(workers, device, cache, progress, engine),
    )
    if as_json:
        print_json(comparison.to_json())
    elif as_csv:
        print_csv(comparison.to_csv())
    elif as_latex:
        say_text(comparison.to_latex())
    else:
        print_intervals(comparison)
    if len(comparison.refused) == len(comparison.covers):
        raise InputError(f"no interval can be given: {next(iter(comparison.refused.values()))}")


def print_intervals(comparison: Comparison) -> None:
    """Print all tables, one section per design."""
    from shotproof.cli.results.report import print_detectors, print_verdict
    from shotproof.comparison.sentences import fates_of
    from shotproof.comparison.wide import title_of
    from shotproof.core.nouns import nouns
    from shotproof.stats.intervals import meanings

    say(f"{100 * comparison.level:.4g}% intervals")
    covered = meanings(comparison.medium)
    for name in comparison.covers:
        say(f"  {name}: {comparison.refused.get(name, covered[name])}")
    say()
    reasons: list[str] = []
    for block in comparison.blocks:
        if len(comparison.blocks) > 1 or block.design.data_set:
            several = len(comparison.blocks) > 1
            say(comparison.design_name(block.design) if several else title_of(block), "")
        for group in [*block.measured, *block.lost]:
            _print_group(comparison, group)
            reasons += _reasons(comparison, group)
    for across in comparison.data_sets:
        if across.mean.quantity in ("accuracy", "gap", "skill_lost"):
            _print_data_sets(comparison, across)
    for reason in dict.fromkeys(reasons):  # each once: it is the same for many groups
        say(f"n/a: {reason}")
    of_all = [one.triples[comparison.metric] for one in comparison.groups if comparison.metric in one.triples]
    if len(of_all) > 1:
        say(f"Over all {len(of_all)} sets of random tasks. {fates_of(of_all)}")
    print_detectors(comparison)
    print_verdict(comparison)
    if comparison.corrected and any(len(group.rows) > 2 for group in comparison.groups):
        say("Conclusions are corrected for the number of pairs, after Holm; intervals are of one pair alone.")
    if comparison.covers == ("sampler",):
        say(
            f"The sampler interval does not cover new {nouns(comparison.medium)} or new classes. For those: "
            "--interval images --interval classes with a run's folder, or with --tasks TASKS --catalog CATALOG "
            "--features FEATURES"
        )


def _print_group(comparison: Comparison, group: Group) -> None:
    """One table per metric, then the pairs by the metric that was chosen."""
    import math

    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import METRIC_NAMES, percent

    seeds = f" of {len(group.seeds)} seeds" if len(group.seeds) > 1 else ""
    title = f"{group.title[:1].upper()}{group.title[1:]}{seeds}"
    what = title if group.against else f"{counted(group.tasks, f'{group.label} task')}{seeds}"
    for metric, name in METRIC_NAMES.items():
        ranked = metric == comparison.metric and group.quantity in ("accuracy", "skill_lost")
        rows = []
        for row in sorted(group.rows, key=lambda row: (math.isnan(row.means[metric]), -row.means[metric])):
            rank, deviation = row.rank(metric), row.spread(metric)
            rows.append(
                [
                    comparison.classifier_name(row.classifier),
                    *(["n/a" if rank is None else rank.span] if ranked else []),
                    percent(row.means[metric]),
                    *([] if deviation is None else [f"{deviation:.1f}"]),
                    *(_bounds(row.intervals[metric][covers]) for covers in comparison.covers),
                ]
            )
        deviates = ["sd over seeds"] if seeds else []
        say(f"{what}: {name}, {'percent' if group.quantity in ('accuracy', 'skill_lost') else 'points'}")
        print_table(
            "",
            [
                "method",
                *([f"rank by {comparison.first_covers}"] if ranked else []),
                name,
                *deviates,
                *comparison.covers,
            ],
            rows,
        )
        say()
    if len(group.rows) > 1 and group.quantity != "placebo":
        _print_pairs(comparison, group, what)
    if comparison.metric in group.triples:
        _print_triples(comparison, group, what)


def _print_pairs(comparison: Comparison, group: Group, what: str) -> None:
    import math

    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import METRIC_NAMES

    by_interval = [group.pairs[comparison.metric, name] for name in comparison.covers]
    rows = [
        [
            " - ".join(comparison.pair_names(pairs[0])),
            "n/a" if math.isnan(pairs[0].interval.mean) else f"{pairs[0].interval.mean:+.2f}",
            *(f"{pair.conclusion} {_bounds(pair.interval, 2)}" for pair in pairs),
        ]
        for pairs in zip(*by_interval, strict=True)
    ]
    total = len(by_interval[0])
    counts = [f"{group.conclusive(comparison.metric, name)} of {total}" for name in comparison.covers]
    name = METRIC_NAMES[comparison.metric]
    unit = "percent of the skill" if group.quantity == "skill_lost" else "points"
    say(f"{what}: pairs by {name}, {unit}; + the first is higher, - lower, 0 not conclusive")
    print_table("", ["pair", "difference", *comparison.covers], [*rows, ["conclusive", "", *counts]])
    say()


def _print_triples(comparison: Comparison, group: Group, what: str) -> None:
    """Direct comparisons with and without replacement, and paired ones."""
    import math

    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import METRIC_NAMES
    from shotproof.comparison.sentences import fates_of

    metric = comparison.metric
    triples, rows = group.triples[metric], []
    for one, pair in zip(triples.pairs, group.pairs[metric, "sampler"], strict=True):
        correlation = group.correlation(pair, metric)
        r = "n/a" if math.isnan(correlation) else f"{correlation:.2f}"
        flagged = " inverted" if one.inverted else ""
        rows.append([" - ".join(comparison.pair_names(pair)), *one.signs, f"{r}{flagged}"])
    counts = [f"{count} of {len(rows)}" for count in triples.conclusive.values()]
    say(
        f"{what}: direct and paired comparisons by {METRIC_NAMES[metric]}, closed (tasks with replacement) and open "
        f"({triples.tasks} without); not corrected for the number of pairs; r: Pearson's between task accuracies"
    )
    print_table("", ["pair", *triples.names, "r"], [*rows, ["conclusive", *counts, ""]])
    say(fates_of([triples]), "")


def _print_data_sets(comparison: Comparison, across: AcrossDataSets) -> None:
    """One row per data set, one column per classifier, the mean below."""
    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import METRIC_NAMES, percent

    metric, covers = comparison.metric, comparison.first_covers
    shown = [row.classifier for row in across.mean.rows]
    rows = []
    for name, group in across.rows:
        cells = [found.intervals[metric][covers] for one in shown if (found := group.row(one))]
        half = ["" if one.refused else f" ±{one.half_width:.1f}" for one in cells]
        rows.append([name, *(f"{percent(one.mean)}{width}" for one, width in zip(cells, half, strict=True))])
    if across.mean.quantity != "gap":
        ranked = [row.ranks[metric][covers] for row in across.mean.rows]
        rows.append(["rank by the mean", *("n/a" if rank is None else rank.span for rank in ranked)])
    unit = "points" if across.mean.quantity == "gap" else "percent"
    say(
        f"Over data sets, {across.name}: {METRIC_NAMES[metric]}, {unit}; ±: {covers} interval, of the mean over these "
        "data sets, not over others"
    )
    print_table("", ["data set", *map(comparison.classifier_name, shown)], rows)
    say()


def _reasons(comparison: Comparison, group: Group) -> list[str]:
    """Why a cell has no interval, where the reason is not that of the whole interval."""
    cells = [one for row in group.rows for named in row.intervals.values() for one in named.values()]
    cells += [
        pair.interval for (metric, _), pairs in group.pairs.items() if metric == comparison.metric for pair in pairs
    ]
    reasons = [f"{one.covers}: {one.refused}" for one in cells if one.refused]
    told = [f"{name}: {reason}" for name, reason in comparison.refused.items()]
    return [reason for reason in dict.fromkeys(reasons) if reason not in told]


def _bounds(interval: Interval, digits: int = 1) -> str:
    if interval.refused:
        return "n/a"
    low, high = (f"{round(end, digits) + 0.0:.{digits}f}" for end in (interval.low, interval.high))
    return f"[{low}, {high}]"
