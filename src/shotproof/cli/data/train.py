"""`shotproof train`: from a catalog and an objective to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import QUERY, SHOT, WAY, Settings, read_one, read_settings, sort_files
from shotproof.cli.console import say, told_notes
from shotproof.core import limits
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    from shotproof.models.objective import Objective
    from shotproof.training.train import Trial

NO_SPLIT = "none"


def train(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="A catalog; attributes and features, for samplers that take them."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The model to write, e.g. protonet.model; of several, '{objective}-{seed}.model'."
        ),
    ],
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="What training minimizes, NAME or NAME(option=value); see shotproof show objectives. "
            "A recipe that has objectives of its own goes without. May be repeated: one model each."
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="The network; see shotproof show backbones. Default: that of --from, or the recipe's, or resnet12."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="The split to train on.")] = "train",
    val_split: Annotated[
        str, typer.Option(help="The split, of other classes, that validates each epoch; none for no validation.")
    ] = "val",
    recipe: Annotated[
        str | None, typer.Option(help="Settings by name, e.g. fewstab-cub, or a whole training, shotproof.")
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="A model that training starts from.")] = None,
    train_sampler: Annotated[
        str | None, typer.Option(help="What draws the training tasks: any sampler. Default: random.")
    ] = None,
    way: Annotated[int | None, WAY] = None,
    shot: Annotated[int | None, SHOT] = None,
    query: Annotated[int | None, QUERY] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=limits.EPOCHS.most, help="Rounds, each with a validation and a checkpoint."),
    ] = None,
    tasks: Annotated[int | None, typer.Option(min=1, max=limits.TASKS.most, help="Tasks per epoch.")] = None,
    lr: Annotated[float | None, typer.Option(help="The learning rate at the start.")] = None,
    setting: Settings = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            max=limits.SEED.most,
            help="Which start, which tasks, which random changes. Default: 0. May be repeated: one model each.",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Begin anew if another training has left its model or checkpoint there.")
    ] = False,
) -> None:
    """Train a network for few shots into a model, which is an encoder (model:FILE) and a method (model:FILE).

    shotproof train catalog.parquet --split train --val-split val --objective protonet --backbone resnet12 --shot 5
    -o protonet.model

    The same command continues a training that was interrupted, from the last epoch that was finished.
    Several objectives or seeds, one model each, one per device with --engine ray:
    --seed 0 --seed 1 -o '{objective}-{seed}.model'
    """
    import time

    from shotproof.core.tables import check_output
    from shotproof.models.objective import objectives
    from shotproof.training.train import train as train_model
    from shotproof.training.train import train_trials

    started = time.monotonic()
    made = [objectives.make(one) for one in objective or []]  # misspelled: told before any file is read
    check_output(output)
    given = sort_files(files, ("catalog", "attributes", "features"))
    if not given["catalog"]:
        raise InputError("expected catalog.parquet, whose items the network is trained on")
    trials = _trials(made, seed or [0], output)
    named: dict[str, Any] = {"way": way, "shot": shot, "query": query, "epochs": epochs, "tasks": tasks}
    named |= {"lr": lr, "train_sampler": train_sampler}
    options = {
        "backbone": backbone,
        "split": split,
        "val_split": None if val_split == NO_SPLIT else val_split,
        "recipe": recipe,
        "from_model": start,
        "replace": replace,
        **{kind: read_one(given[kind], kind) for kind in ("attributes", "features")},
        **read_settings(setting or []),
        **{name: value for name, value in named.items() if value is not None},
    }
    items = read_one(given["catalog"], "catalog")
    with told_notes():
        if len(trials) == 1:
            only = trials[0]
            models = [train_model(items, only.objective, seed=only.seed, output=only.output, **options)]
        else:
            models = train_trials(items, trials, **options)
    for trial, model in zip(trials, models, strict=True):
        last = model.record.curve[-1]
        best = next(row for row in model.record.curve if row["epoch"] == model.record.best)
        validated = "" if best["accuracy"] is None else f", validation {best['accuracy']:.2f}%"
        say(
            f"{trial.output}: {model.name}, {len(model.record.classes)} classes, epoch {best['epoch']} of "
            f"{last['epoch']}{validated}, loss {best['loss']:.3f}; {time.monotonic() - started:.1f} s"
        )


def _trials(made: list[Objective[Any]], seeds: list[int], output: Path) -> list[Trial]:
    """One for each objective and seed, whose names take the places of `{objective}` and `{seed}` in the output."""
    from shotproof.pipeline.steps.steps import file_name
    from shotproof.training.train import Trial

    for name, several in {"{objective}": len(made) > 1, "{seed}": len(seeds) > 1}.items():
        if several and name not in output.name:
            raise InputError(f"--output {output}: of several models, expected {name} in its name")

    def written(objective: Objective[Any] | None, seed: int) -> Path:
        spelled = "" if objective is None else file_name(str(objective))
        return output.with_name(output.name.replace("{objective}", spelled).replace("{seed}", str(seed)))

    chosen: list[Objective[Any] | None] = [*made] or [None]
    return [Trial(one, seed, written(one, seed)) for one in chosen for seed in seeds]
