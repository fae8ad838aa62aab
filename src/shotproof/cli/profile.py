"""`shotproof profile`: the robustness card of one classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.arguments import QUERY, WAY, AsJson, Seed, SkipBad, Verbose, sort_files
from shotproof.cli.console import say
from shotproof.core import limits

KINDS = ("attributes", "features")


def profile(
    data: Annotated[Path, typer.Argument(help="A data folder, a catalog, or a run's folder.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILES",
            help="Attributes for FewSTAB's tasks, and features in place of an encoder: npy, npz or Parquet.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write. Default: DATA's name with -profile.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Of the classifier. Default: lite0 for images, logmel for sounds.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Of the classifier. Default: cosine, or of a model its own head.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="FILE.model in place of an encoder; methods such as finetune adapt it.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="How a data folder is read. Default: folder.")] = None,
    splits: Annotated[Path | None, typer.Option(help="A CSV with the columns label and split.")] = None,
    split: Annotated[
        str | None, typer.Option(help="To draw tasks from. Default: test, where there are several.")
    ] = None,
    detector: Annotated[
        list[str] | None,
        typer.Option(help="What makes them. Default: the run's, the catalog's true/false columns, else photometric."),
    ] = None,
    context_column: Annotated[
        str | None, typer.Option(help="The column with contexts. Default: the first that looks like them.")
    ] = None,
    class_distances: Annotated[
        Path | None, typer.Option(help="A hierarchy or distances of the classes, for tasks of alike classes.")
    ] = None,
    way: Annotated[int, WAY] = 5,
    query: Annotated[int, QUERY] = 15,
    tasks: Annotated[int | None, typer.Option(min=2, max=limits.TASKS.most, help="Per task set. Default: 600.")] = None,
    seed: Seed = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the tasks, fewer re-evaluations, and wider intervals.")
    ] = False,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Measure one classifier on all axes that the data allows, beside baselines, and write its robustness card.

    shotproof profile birds/ --encoder lite0 --method cosine -o birds-profile

    The folder has card.html, card.json, card.svg and badge.svg, and the files of the run, which is not made again.
    """
    from shotproof.cli.console import print_json, told_notes
    from shotproof.cli.results.print_comparison import print_card
    from shotproof.core.errors import InputError
    from shotproof.pipeline.profile.profile import profile as make_profile

    arrays = [file for file in files or () if file.suffix in (".npy", ".npz")]
    beside = sort_files([file for file in files or () if file not in arrays], KINDS, several=["attributes"])
    features = [*arrays, *beside["features"]]
    if len(features) > 1:
        raise InputError(f"{features[0]} and {features[1]} both hold features, expected those of one encoder")
    with told_notes():
        made = make_profile(
            data,
            output or Path(f"{data.resolve().stem}-profile"),
            encoder=encoder,
            method=method,
            features=next(iter(features), None),
            model=model,
            layout=layout,
            splits=splits,
            split=split,
            attributes=beside["attributes"],
            detectors=detector or (),
            context_column=context_column,
            class_distances=class_distances,
            way=way,
            query=query,
            tasks=tasks,
            seed=seed,
            quick=quick,
            skip_bad=skip_bad,
            verbose=verbose,
            tell=lambda line: say(line, err=True),
        )
    if as_json:
        print_json(made.card.to_json())
    else:
        print_card(made.card, made.comparison)
        say(f"card: {made.page}")
