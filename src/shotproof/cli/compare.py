"""`shotproof compare`: methods on the same tasks, with intervals that name what they cover."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shotproof.evaluation.evaluated import Metric
    from shotproof.stats.compare import MethodGroup, MethodTable
    from shotproof.stats.intervals import Interval
    from shotproof.stats.material import Material

NAMES: dict[str, str] = {"acc": "Acc", "wacc": "wAcc"}


def compare(
    results: Annotated[
        list[Path], typer.Argument(help="Results of the same tasks; or of random tasks and others of the same design.")
    ],
    interval: Annotated[
        list[str] | None,
        typer.Option(help="sampler, depletion, images or classes; may be repeated. Default: sampler."),
    ] = None,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    metric: Annotated[str, typer.Option(help="What methods are ranked and paired by: acc or wacc.")] = "acc",
    holm: Annotated[bool, typer.Option(help="Correct for the number of pairs, after Holm.")] = True,
    tasks: Annotated[
        list[Path] | None, typer.Option(help="A task file of the results, for images and classes; may be repeated.")
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="The catalog, for all intervals but sampler.")] = None,
    features: Annotated[
        list[Path] | None, typer.Option(help="An encoder's features, for all intervals but sampler; may be repeated.")
    ] = None,
    attributes: Annotated[Path | None, typer.Option(help="The attributes, where a sampler needs them.")] = None,
    splits: Annotated[int | None, typer.Option(help="Random halvings of the data. Default: 100.")] = None,
    workers: Annotated[int, typer.Option(help="Processes to re-evaluate in. Default: one a core.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, in percent points.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print everything as CSV, in percent points.")] = False,
) -> None:
    """Compare methods on the same tasks: intervals that name what they cover, ranks with ties, and all pairs.

    Example: shotproof compare results.parquet --interval sampler --interval images --tasks tasks.parquet
    --catalog catalog.parquet --features features.parquet
    """
    from shotproof.cli.console import print_json
    from shotproof.errors import InputError
    from shotproof.evaluation.results import Results
    from shotproof.stats.compare import compare as compare_methods

    table = compare_methods(
        [Results.read(path) for path in results],
        intervals=interval,
        level=level,
        metric=metric,
        correct=holm,
        material=read_material(tasks, catalog, features, attributes, workers, splits),
    )
    if as_json:
        print_json(table.to_json())
    elif as_csv:
        typer.echo(_csv(table), nl=False)
    else:
        _print(table)
    if len(table.refused) == len(table.covers):
        raise InputError(f"no interval can be given: {next(iter(table.refused.values()))}")


def read_material(
    tasks: list[Path] | None,
    catalog: Path | None,
    features: list[Path] | None,
    attributes: Path | None,
    workers: int,
    splits: int | None = None,
) -> Material:
    """What was given for re-evaluation; `workers` 0: one a core."""
    import os

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.errors import InputError
    from shotproof.features.features import Features
    from shotproof.stats.material import Material
    from shotproof.stats.splits import SPLITS
    from shotproof.tasks.taskset import TaskSet

    if splits is not None and splits < 2:
        raise InputError(f"splits: expected at least 2, found {splits}")
    return Material(
        tasks=[TaskSet.read(path) for path in tasks or []],
        catalog=Catalog.read(catalog) if catalog else None,
        features=[Features.read(path) for path in features or []],
        attributes=Attributes.read(attributes) if attributes else None,
        splits=splits or SPLITS,
        workers=workers if workers > 0 else os.cpu_count() or 1,
    )


def _print(table: MethodTable) -> None:
    from shotproof.stats.intervals import MEANING

    typer.echo(f"{100 * table.level:.4g}% intervals")
    for name in table.covers:
        typer.echo(f"  {name}: {table.refused.get(name, MEANING[name])}")
    for note in table.notes:
        typer.echo(f"  {note}")
    typer.echo()
    for group in [*table.groups, *table.gaps]:
        _print_group(table, group)
    if table.corrected and any(len(group.methods) > 2 for group in table.groups):
        typer.echo("Conclusions are corrected for the number of pairs, after Holm; intervals are of one pair alone.")
    if table.covers == ("sampler",):
        typer.echo(
            "The sampler interval does not cover new images or new classes. For those: --interval images "
            "--interval classes --tasks TASKS --catalog CATALOG --features FEATURES"
        )


def _print_group(table: MethodTable, group: MethodGroup) -> None:
    """A table a metric, then the pairs by the metric that was chosen."""
    from shotproof.cli.console import print_table

    what = (
        f"Gap, {group.sampler} minus {group.biased} tasks" if group.biased else f"{group.tasks} {group.sampler} tasks"
    )
    metrics: list[Metric] = ["acc", "wacc"]
    for metric in metrics:
        ranked = metric == table.metric and not group.biased
        rows = [
            [
                row.method,
                *([_text(row.rank)] if ranked else []),
                f"{100 * row.means[metric]:.1f}",
                *(_bounds(row.intervals[metric][name]) for name in table.covers),
            ]
            for row in sorted(group.methods, key=lambda row: -row.means[metric])
        ]
        columns = ["method", *(["rank"] if ranked else []), NAMES[metric], *table.covers]
        typer.echo(f"{what}: {NAMES[metric]}, {'points' if group.biased else 'percent'}")
        print_table("", columns, rows)
        typer.echo()
    if len(group.methods) > 1:
        _print_pairs(table, group, what)
    for reason in _reasons(table, group):
        typer.echo(f"n/a: {reason}")


def _print_pairs(table: MethodTable, group: MethodGroup, what: str) -> None:
    from shotproof.cli.console import print_table

    by_interval = [group.pairs[table.metric, name] for name in table.covers]
    rows = [
        [
            f"{pairs[0].a} - {pairs[0].b}",
            f"{100 * pairs[0].interval.mean:+.2f}",
            *(f"{pair.conclusion} {_bounds(pair.interval, 2)}" for pair in pairs),
        ]
        for pairs in zip(*by_interval, strict=True)
    ]
    total = len(by_interval[0])
    counts = [f"{group.conclusive(table.metric, name)} of {total}" for name in table.covers]
    typer.echo(f"{what}: pairs by {NAMES[table.metric]}, points; + the first is higher, - lower, 0 not conclusive")
    print_table("", ["pair", "points", *table.covers], [*rows, ["conclusive", "", *counts]])
    typer.echo()


def _reasons(table: MethodTable, group: MethodGroup) -> list[str]:
    """Why a cell has no interval, where the reason is not that of the whole interval."""
    cells = [one for row in group.methods for named in row.intervals.values() for one in named.values()]
    cells += [pair.interval for (metric, _), pairs in group.pairs.items() if metric == table.metric for pair in pairs]
    reasons = [f"{one.covers}: {one.refused}" for one in cells if one.refused]
    told = [f"{name}: {reason}" for name, reason in table.refused.items()]
    return [reason for reason in dict.fromkeys(reasons) if reason not in told]


def _bounds(interval: Interval, digits: int = 1) -> str:
    if interval.refused:
        return "n/a"
    low, high = (f"{round(100 * end, digits) + 0.0:.{digits}f}" for end in (interval.low, interval.high))
    return f"[{low}, {high}]"


def _text(value: float | None) -> str:
    return "n/a" if value is None else str(value)


def _csv(table: MethodTable) -> str:
    """Methods, pairs and, where there are any, gaps and their pairs: each with a heading, an empty line between."""
    import csv
    import io

    content = table.to_json()
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for kind in ("methods", "pairs", "gaps", "gap_pairs"):
        rows = content[kind] if "pairs" in kind else [flat for row in content[kind] for flat in _flat(row)]
        if rows:
            if kind != "methods":
                written.write("\n")
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows)
    return written.getvalue()


def _flat(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A method's row for each metric and interval."""
    return [
        {
            "method": row["method"],
            "metric": metric,
            "mean": row[metric],
            "rank": row["ranks"][name],
            "interval": name,
            "low": bounds and bounds[0],
            "high": bounds and bounds[1],
            "refused": row["refused"][metric].get(name),
            "tasks": row["tasks"],
        }
        for metric, named in row["intervals"].items()
        for name, bounds in named.items()
    ]
