"""`shotproof transfer`: are tasks that are hard for one encoder hard for others too?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.console import say
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Workers, make_runtime
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.analysis.transfer_tables import TransferTable


def transfer(
    tasks: Annotated[list[Path], typer.Argument(help="Task sets that were extracted with an encoder.")],
    against: Annotated[Path, typer.Option(help="The set with the same queries to measure the drop from, e.g. random.")],
    features: Annotated[list[Path], typer.Option("--features", "-f", help="An encoder's features; may be repeated.")],
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="NAME or NAME(option=value); may be repeated. Default: as of evaluate."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the results, to compare and report from.")
    ] = None,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, max=limits.SEED.most, help="For methods that draw random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tables as JSON, in points.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the tables as CSV, in points.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Evaluate tasks that were extracted with one encoder with others, and say how far each drops.

    Example: shotproof transfer hard.parquet --against random.parquet --features lite0.parquet
    --features pixels.parquet --method ncc --method logistic
    """
    from shotproof.analysis.transfer_tables import transfer as evaluate_transfer
    from shotproof.cli.console import print_csv, print_json
    from shotproof.features.features import Features
    from shotproof.learners.method import DEFAULT_METHODS
    from shotproof.tasks.taskset import TaskSet

    runtime = make_runtime(workers, device, cache, progress, engine)
    sets, reference = [TaskSet.read(path) for path in tasks], TaskSet.read(against)
    encoders = [Features.read(path) for path in features]
    tables, results = evaluate_transfer(
        sets, reference, encoders, method or DEFAULT_METHODS, level=level, seed=seed, runtime=runtime
    )
    if output:
        pairs = [(path, encoder) for path in (against, *tasks) for encoder in features]
        for (path, encoder), given in zip(pairs, results, strict=True):
            given.write(output / f"{path.stem}-{encoder.stem}.parquet")
    if as_json:
        print_json([table.to_json() for table in tables])
    elif as_csv:
        print_csv(_csv(tables))
    else:
        for table in tables:
            _print(table)
        if output:
            say(f"results: {output}")


def _print(table: TransferTable) -> None:
    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import bounds, percent
    from shotproof.results.encoder_names import short_encoder_names

    names = short_encoder_names(row.classifier.encoder for row in table.rows)
    extracted = f", extracted with {names[table.extracted_with]}," if table.extracted_with else ""
    same = "with the same queries, drops task by task" if table.paired else "with other queries"
    say(
        f"{counted(table.tasks, f'{table.sampler} task')}{extracted} against {table.reference} tasks {same}",
        f"percent; drop: {table.reference} minus {table.sampler}, {100 * table.level:.4g}% sampler interval "
        "(covers new tasks from the same items)",
        "",
    )
    rows = [
        [
            f"{names[row.classifier.encoder]}{' *' if row.own else ''}",
            row.classifier.method,
            *(
                cell
                for metric in row.drop
                for cell in (
                    percent(row.reference[metric].mean),
                    percent(row.hard[metric].mean),
                    percent(row.drop[metric].mean),
                    bounds(row.drop[metric]),
                )
            ),
        ]
        for row in table.rows
    ]
    sides = (table.reference, table.sampler)
    columns = [f"{name} {what}" for name in ("Acc", "wAcc") for what in (*sides, "drop", "interval")]
    print_table("", ["encoder", "method", *columns], rows)
    if table.extracted_with:
        say("* the tasks were extracted with this encoder")
    say()


def _csv(tables: list[TransferTable]) -> str:
    """One row per classifier and set of hard tasks."""
    import csv
    import io

    rows = [
        {name: table[name] for name in ("sampler", "reference", "tasks", "extracted_with", "paired")} | row
        for table in (one.to_json() for one in tables)
        for row in table["rows"]
    ]
    written = io.StringIO()
    writer = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()
