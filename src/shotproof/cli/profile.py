"""`shotproof profile`: the robustness card of one classifier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.console import say
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Verbose, Workers
from shotproof.core import limits

if TYPE_CHECKING:
    from shotproof.comparison.card import Card
    from shotproof.stats.intervals import Interval


def profile(
    data: Annotated[
        Path | None, typer.Argument(help="A data folder, a catalog, or a run's folder.", show_default=False)
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
    features: Annotated[Path | None, typer.Option(help="Features in place of an encoder: npy, npz or Parquet.")] = None,
    model: Annotated[
        str | None, typer.Option(help="FILE.model in place of an encoder; methods such as finetune adapt it.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="How a data folder is read. Default: folder.")] = None,
    splits: Annotated[Path | None, typer.Option(help="A CSV with the columns label and split.")] = None,
    split: Annotated[
        str | None, typer.Option(help="To draw tasks from. Default: test, where there are several.")
    ] = None,
    attributes: Annotated[
        list[Path] | None, typer.Option("--attributes", "-a", help="Attributes for FewSTAB's tasks.")
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
    way: Annotated[int, typer.Option(min=2, max=limits.WAY.most, help="Classes per task.")] = 5,
    query: Annotated[int, typer.Option(min=1, max=limits.QUERY.most, help="Query items per class.")] = 15,
    tasks: Annotated[int | None, typer.Option(min=2, max=limits.TASKS.most, help="Per task set. Default: 600.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=limits.SEED.most, help="Which tasks.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the tasks, fewer re-evaluations, and wider intervals.")
    ] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out files that cannot be read.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of cards.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
    verbose: Verbose = False,
) -> None:
    """Measure one classifier on all axes that the data allows, beside baselines, and write its robustness card.

    shotproof profile birds/ --encoder lite0 --method cosine -o birds-profile

    The folder has card.html, card.json, card.svg and badge.svg, and the files of the run, which is not made again.
    """
    from shotproof.cli.console import print_json, say_text, told_notes
    from shotproof.cli.runtime_options import make_runtime
    from shotproof.comparison.card_schema import SHIPPED
    from shotproof.comparison.sentences import interval_sentences
    from shotproof.core.errors import InputError
    from shotproof.pipeline.profile.profile import profile as make_profile

    if schema:
        say_text(SHIPPED.read_text(encoding="utf-8"))
        return
    if data is None:
        raise InputError("expected data: shotproof profile DATA --encoder lite0 --method cosine -o FOLDER")
    runtime = make_runtime(workers, device, cache, progress, engine)
    with runtime, told_notes():
        found = make_profile(
            data,
            output or Path(f"{data.resolve().stem}-profile"),
            encoder=encoder,
            method=method,
            features=features,
            model=model,
            layout=layout,
            splits=splits,
            split=split,
            attributes=attributes or (),
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
            runtime=runtime,
        )
    if as_json:
        print_json(found.card.to_json())
    else:
        print_card(found.card)
        for sentence in interval_sentences(found.comparison):
            say(sentence)
        say(f"card: {found.page}")


def print_card(card: Card) -> None:
    """Print one row per axis, and what was found in sentences."""
    from shotproof.cli.console import print_table
    from shotproof.comparison.numbers import bounds, level, percent

    def shown(number: Interval | None) -> str:
        if number is None:
            return "-"
        if not number.has_mean:
            return (number.refused or "-").split(":")[0]
        named = "" if number.covers == card.covers or number.refused else f" {number.covers}"
        return f"{percent(number.mean)} {bounds(number)}{named}"

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
    for sentence in card.verdict:
        say(sentence)
    for note in card.notes:
        say(f"{note}.")
    if card.quick:
        say("This is a quick card, of a tenth of the tasks: its intervals are wide.")
