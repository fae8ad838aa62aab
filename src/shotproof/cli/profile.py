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
    data: Annotated[Path, typer.Argument(help="Data folder, catalog, or run folder.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILES",
            help="Attributes for FewSTAB tasks, and features to use instead of an encoder: npy, npz or Parquet.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write. Default: the name of DATA with -profile.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Encoder of the classifier. Default: lite0 for images, logmel for sounds.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Method of the classifier. Default: cosine, or a model's own head.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model file to use instead of an encoder; methods such as finetune adapt it.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="Layout of a data folder. Default: folder.")] = None,
    splits: Annotated[Path | None, typer.Option(help="CSV file with the columns label and split.")] = None,
    split: Annotated[
        str | None, typer.Option(help="Split to draw tasks from. Default: test, if there are several.")
    ] = None,
    detector: Annotated[
        list[str] | None,
        typer.Option(
            help="Attribute detector; repeatable. Default: as in the run; else the true/false columns, or photometric."
        ),
    ] = None,
    context_column: Annotated[
        str | None, typer.Option(help="Column with the contexts. Default: the first column that looks like contexts.")
    ] = None,
    class_distances: Annotated[
        Path | None, typer.Option(help="Hierarchy or distances of the classes, for tasks with similar classes.")
    ] = None,
    masks: Annotated[
        Path | None,
        typer.Option(
            help="Folder of masks, named as the images, for other backgrounds. Default: the column mask, or grabcut "
            "with the boxes of the catalog."
        ),
    ] = None,
    way: Annotated[int, WAY] = 5,
    query: Annotated[int, QUERY] = 15,
    tasks: Annotated[
        int | None, typer.Option(min=2, max=limits.TASKS.most, help="Tasks per task set. Default: 600.")
    ] = None,
    seed: Seed = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use a tenth of the tasks and fewer re-evaluations; intervals are wider.")
    ] = False,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Measure one classifier and baselines on all axes that the data allows, and write its robustness card.

    shotproof profile birds/ --encoder lite0 --method cosine -o birds-profile

    The folder gets card.html, card.json, card.svg, badge.svg and the files of the run; files up to date are reused.
    """
    from shotproof.cli.console import print_json, printed_notes
    from shotproof.cli.results.print_comparison import print_card
    from shotproof.core.errors import InputError
    from shotproof.pipeline.profile.profile import profile as make_profile

    arrays = [file for file in files or () if file.suffix in (".npy", ".npz")]
    sorted_files = sort_files([file for file in files or () if file not in arrays], KINDS, several=["attributes"])
    features = [*arrays, *sorted_files["features"]]
    if len(features) > 1:
        raise InputError(f"{features[0]} and {features[1]} both hold features: expected only one of them")
    with printed_notes():
        result = make_profile(
            data,
            output or Path(f"{data.resolve().stem}-profile"),
            encoder=encoder,
            method=method,
            features=next(iter(features), None),
            model=model,
            layout=layout,
            splits=splits,
            split=split,
            attributes=sorted_files["attributes"],
            detectors=detector or (),
            context_column=context_column,
            class_distances=class_distances,
            masks=masks,
            way=way,
            query=query,
            tasks=tasks,
            seed=seed,
            quick=quick,
            skip_bad=skip_bad,
            verbose=verbose,
            log=lambda line: say(line, err=True),
        )
    if as_json:
        print_json(result.card.to_json())
    else:
        print_card(result.card, result.comparison)
        say(f"card: {result.page}")
