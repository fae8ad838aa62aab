"""`shotproof explain transfer`: whether tasks that are hard for one encoder are hard for others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import AsCsv, AsJson, Level, Seed, read_all, sort_files
from shotproof.cli.console import print_table, say
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.analysis.transfer_tables import TransferTable


def transfer(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Task sets extracted with an encoder, and the features of all encoders."),
    ],
    against: Annotated[Path, typer.Option(help="Task set with the same queries as reference, e.g. random tasks.")],
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="NAME or NAME(option=value); repeatable. Default: as in evaluate."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write the results to, for comparison.")
    ] = None,
    level: Level = 0.95,
    seed: Seed = 0,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Evaluate other encoders on tasks extracted with one encoder, and measure how far the accuracy of each drops.

    Example: shotproof explain transfer hard.parquet lite0.parquet pixels.parquet --against random.parquet
    --method ncc --method logistic
    """
    from shotproof.analysis.transfer_tables import transfer as evaluate_transfer
    from shotproof.cli.console import print_json, print_records
    from shotproof.learners.method import DEFAULT_METHODS

    kinds = ("tasks", "features")
    sorted_files = sort_files(files, kinds, several=kinds)
    if not all(sorted_files.values()):
        raise InputError("expected at least one task set, and the features of at least one encoder")
    sets, encoders = (read_all(sorted_files[kind], kind) for kind in kinds)
    (reference,) = read_all([against], "tasks")
    tables, results = evaluate_transfer(sets, reference, encoders, method or DEFAULT_METHODS, level=level, seed=seed)
    if output:
        pairs = [(path, encoder) for path in (against, *sorted_files["tasks"]) for encoder in sorted_files["features"]]
        for (path, encoder), evaluated in zip(pairs, results, strict=True):
            evaluated.write(output / f"{path.stem}-{encoder.stem}.parquet")
    if as_json:
        print_json([table.to_json() for table in tables])
    elif as_csv:
        print_records(_records(tables))
    else:
        for table in tables:
            _print_table(table)
        if output:
            say(f"results: {output}")


def _print_table(table: TransferTable) -> None:
    """Print the accuracies on both sets and the drop of each classifier."""
    from shotproof.comparison.numbers import bounds, percent
    from shotproof.results.encoder_names import short_encoder_names

    names = short_encoder_names(row.classifier.encoder for row in table.rows)
    extracted = f", extracted with {names[table.extracted_with]}," if table.extracted_with else ""
    pairing = "with the same queries, drops task by task" if table.paired else "with other queries"
    say(
        f"{counted(table.tasks, f'{table.sampler} task')}{extracted} compared with {table.reference} tasks {pairing}",
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
    columns = [f"{metric} {label}" for metric in ("Acc", "wAcc") for label in (*sides, "drop", "interval")]
    print_table("", ["encoder", "method", *columns], rows)
    if table.extracted_with:
        say("* encoder that the tasks were extracted with")
    say()


def _records(tables: list[TransferTable]) -> list[dict[str, Any]]:
    """Return one record per classifier and set of hard tasks."""
    return [
        {name: table[name] for name in ("sampler", "reference", "tasks", "extracted_with", "paired")} | row
        for table in (table.to_json() for table in tables)
        for row in table["rows"]
    ]
