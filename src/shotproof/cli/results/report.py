"""`shotproof report`: the comparison on the terminal, and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

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
)
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Workers, make_runtime

if TYPE_CHECKING:
    from shotproof.analysis.explanation.mismatch import Pooling
    from shotproof.comparison.comparison import Comparison
    from shotproof.comparison.estimate_rows import EstimateRow
    from shotproof.results.origin import Design
    from shotproof.stats.block import Quantity
    from shotproof.stats.intervals import Interval

LOSSES: tuple[Quantity, ...] = ("gap", "skill_lost")  # what the terminal tells of what is lost


def report(
    results: ResultsFiles,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    tasks: TaskFiles = None,
    catalog: CatalogFiles = None,
    features: FeatureFiles = None,
    attributes: AttributeFiles = None,
    similarity: Annotated[
        Path | None, typer.Option(help="similarity.parquet: adds how near images are to their concepts and contexts.")
    ] = None,
    interval: IntervalNames = None,
    metric: MetricName = "acc",
    placebo: WithPlacebo = True,
    trust: Trusted = False,
    mismatch: Annotated[
        str, typer.Option(help="In why tasks are hard: class, class by class, or pooled over a task.")
    ] = "class",
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="A folder for all figures of the comparison, as SVG, PDF and PNG.")
    ] = None,
    projection: Annotated[
        str, typer.Option(help="How an iid task and its ood one are laid out on a plane: pca, tsne or none.")
    ] = "pca",
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Compare results on random and on biased tasks; print the table and write it as a page that opens offline.

    Example: shotproof report random.parquet fewstab.parquet --tasks fewstab-tasks.parquet
    --catalog catalog.parquet -o report.html
    """
    from shotproof.analysis.explanation.explain import check_mismatch
    from shotproof.analysis.projection import check_projection
    from shotproof.analysis.similarity import Similarity
    from shotproof.cli.console import print_json
    from shotproof.core.tables import check_output
    from shotproof.pipeline.report import check_page_name
    from shotproof.pipeline.study import Study
    from shotproof.stats.intervals import check_intervals

    check_page_name(output, "--figures FOLDER")
    check_output(output)
    check_projection(projection)
    check_mismatch(mismatch)
    if figures is not None:
        check_output(figures, folder=True)
    if interval is not None:
        check_intervals(interval)
    parts = [*results, *(tasks or ()), *(catalog or ()), *(features or ()), *(attributes or ())]
    study = Study.of(parts, trust=trust, runtime=make_runtime(workers, device, cache, progress, engine))
    comparison = study.compare(intervals=interval, metric=metric, placebo=placebo)
    study.report(
        output,
        title=title,
        comparison=comparison,
        mismatch=cast("Pooling", mismatch),
        similarity=Similarity.read(similarity) if similarity else None,
        figures=figures,
        projection=projection,
    )
    if as_json:
        print_json(comparison.to_json())
    else:
        print_comparison(comparison)
        say(f"report: {output}")
        if figures is not None:
            say(f"figures: {figures}")


def print_comparison(comparison: Comparison) -> None:
    """Print one table per design and task set, with one row per classifier, and what was found in a sentence or two."""
    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import bounds, level, metric_symbol, percent
    from shotproof.comparison.sentences import interval_sentences
    from shotproof.report.pages.axis_tables import alone_rows
    from shotproof.results.evaluated import METRICS

    def cell(one: Interval | None) -> str:
        """A loss; a reason instead of a number that there is not."""
        if one is None:
            return "-"
        named = "" if one.covers == comparison.first_covers or one.refused else f" {one.covers}"
        number = f"{percent(one.mean)} {bounds(one)}" if one.has_mean else (one.refused or "").split(":")[0]
        return number + named

    tables: dict[tuple[Design, str], list[EstimateRow]] = {}
    for row in [*comparison.rows("gap", "acc"), *alone_rows(comparison)]:
        tables.setdefault((row.design, row.tasks), []).append(row)
    for (design, label), rows in tables.items():
        first = rows[0].reference
        labels = [label] if first is None else [first, label]
        cells = []
        for row in rows:
            numbers = [comparison.number(row, "accuracy", by, side) for by in METRICS for side in labels]
            losses = [comparison.number(row, what, by) for what in LOSSES for by in METRICS] if first else []
            means = [percent(one.mean) if one else "-" for one in numbers]
            cells.append([comparison.classifier_title(row.classifier), *means, *map(cell, losses)])
        headings = ["gap in Acc", "in wAcc", "skill lost in Acc", "in wAcc"] if first else []
        columns = ["classifier", *(metric_symbol(name, side) for name in ("Acc", "wAcc") for side in labels), *headings]
        interval = f"{level(comparison.level)} {comparison.first_covers} interval"
        print_table(f"{comparison.design_name(design)} tasks: percent, {interval}", columns, cells)
        say()
    _print_seeds(comparison)
    print_detectors(comparison)
    print_verdict(comparison)
    for sentence in interval_sentences(comparison):
        say(sentence)


def print_verdict(comparison: Comparison) -> None:
    """Print what to know and do in plain words, what was found in at most five sentences, and what their terms mean."""
    from shotproof.comparison.summary import terms

    in_short = comparison.summary()
    if in_short:
        say(" ".join(in_short))
        say()
    for sentence in comparison.verdict():
        say(sentence)
    for note in comparison.notes:
        say(f"{note}.")
    for term in terms(comparison):
        say(f"{term.word}: {term.meaning}.")


def _print_seeds(comparison: Comparison) -> None:
    """Print how much the means vary over seeds, where there are several."""
    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import percent
    from shotproof.report.pages.agreement_tables import seed_rows
    from shotproof.results.evaluated import METRICS

    rows = []
    for row in seed_rows(comparison):
        of_row = [one for by in METRICS if (one := comparison.beside(row, metric=by))]
        spreads = [f"{percent(one.interval.mean)} ±{percent(one.deviation or 0.0)}" for one in of_row]
        name = f"{row.title}, {comparison.design_name(row.design)}"
        rows.append([name, comparison.classifier_name(row.classifier), str(len(row.seeds)), *spreads])
    if rows:
        columns = ["task set", "classifier", "seeds", "Acc", "wAcc"]
        print_table("percent, mean ± standard deviation over seeds", columns, rows, left=2)
        say()


def print_detectors(comparison: Comparison) -> None:
    """Print how well detectors agree, where one sampler was given the attributes of several."""
    import math

    from shotproof.comparison.numbers import percent

    for block in comparison.blocks:
        for one in block.detectors:
            first, second = one.detectors
            name = f"{comparison.design_name(block.design)} tasks, {one.sampler}"
            told = []
            if not math.isnan(one.correlation):
                told.append(f"Spearman's correlation {one.correlation:.2f} over {one.classifiers} classifiers")
            if one.accuracy:
                told.append(f"detection accuracy {' and '.join(map(percent, one.accuracy))}%")
            if told:
                say(f"{name} with {first} and with {second}: {', '.join(told)}.")
