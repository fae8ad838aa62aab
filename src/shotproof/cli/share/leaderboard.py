"""`shotproof share leaderboard`: cards and results of many classifiers as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.arguments import Level, MetricName
from shotproof.cli.console import print_table, say

SHOWN = 10


def leaderboard(
    folder: Annotated[
        Path, typer.Argument(help="A folder with cards and results, and with the task files that they must be on.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder of the site, replaced as a whole. Default: site in FOLDER."),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(help="What ranks are by: images or sampler. Default: on each axis images where all have it."),
    ] = None,
    level: Level = 0.95,
    metric: MetricName = "acc",
    title: Annotated[str, typer.Option(help="Of the site.")] = "Leaderboard",
) -> None:
    """Rank all classifiers of a folder on the same task sets, and write a site that opens as a file.

    Submitting is adding a file. One on other task sets is refused by name.

    Example: shotproof share leaderboard submissions/ -o site
    """
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
        ranked = [(place, one) for place, one in enumerate(column.intervals) if one is not None]
        ranked.sort(key=lambda one: -one[1].mean)
        rows = [
            [str(column.ranks[place] or "n/a"), str(board.entries[place].classifier), percent(one.mean), bounds(one)]
            for place, one in ranked[:SHOWN]
        ]
        name = f"{board.axes[column.axis].name}{f', {data_set}' if data_set else ''}"
        say(f"{name}: the first {len(rows)} of {len(ranked):,}")
        print_table("", ["rank", "classifier", board.metric, column.covers], rows)
    for note in board.notes:
        say(note)
    say(f"{output}: {len(board.entries):,} classifier{'s' * (len(board.entries) != 1)}; open {output / 'index.html'}")
