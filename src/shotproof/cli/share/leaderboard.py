"""`shotproof share leaderboard`: static sites that rank many classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.arguments import Level, MetricName
from shotproof.cli.console import print_table, say

MAX_SHOWN = 10


def leaderboard(
    folder: Annotated[
        Path, typer.Argument(help="Folder with cards and results, and the task files that they must be on.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the site, which is replaced. Default: site in FOLDER."),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(help="Interval of the ranks: images or sampler. Default: on each axis images, if all have it."),
    ] = None,
    level: Level = 0.95,
    metric: MetricName = "acc",
    title: Annotated[str, typer.Option(help="Title of the site.")] = "Leaderboard",
) -> None:
    """Rank all classifiers of a folder on the same task sets, and write a site that opens as a file.

    To submit a classifier, add its file. Files on other task sets are rejected.

    Example: shotproof share leaderboard submissions/ -o site
    """
    from shotproof.comparison.card_remedies import remedy_sentence
    from shotproof.comparison.numbers import bounds, percent
    from shotproof.pipeline.leaderboard_files import leaderboard as rank

    output = folder / "site" if output is None else output
    board = rank(folder, output, interval=interval, level=level, metric=metric, title=title)
    for data_set in board.data_sets:
        column = next(
            column
            for column in board.columns
            if board.axes[column.axis].data_set == data_set and column.metric == board.metric
        )
        ranked = [(index, number) for index, number in enumerate(column.intervals) if number is not None]
        ranked.sort(key=lambda pair: -pair[1].mean)
        rows = [
            [
                str(column.ranks[index] or "n/a"),
                str(board.entries[index].classifier),
                percent(number.mean),
                bounds(number),
            ]
            for index, number in ranked[:MAX_SHOWN]
        ]
        name = f"{board.axes[column.axis].name}{f', {data_set}' if data_set else ''}"
        say(f"{name}: the first {len(rows)} of {len(ranked):,}")
        print_table("", ["rank", "classifier", board.metric, column.interval_name], rows)
    for entry in board.entries:
        if entry.remedies:
            say(f"{entry.classifier}: {remedy_sentence(entry.remedies)}")
    for note in board.notes:
        say(note)
    say(f"{output}: {len(board.entries):,} classifier{'s' * (len(board.entries) != 1)}; open {output / 'index.html'}")
