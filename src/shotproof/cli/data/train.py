"""`shotproof train`: from a catalog and an objective to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shotproof.cli.console import say, told_notes
from shotproof.cli.runtime_options import Cache, Device, EngineName, Progress, Workers
from shotproof.core import limits

if TYPE_CHECKING:
    from shotproof.models.objective import Objective
    from shotproof.training.train import Trial

NO_SPLIT = "none"
UNLESS = "Default: the recipe's, or else the objective's."


def train(
    catalog: Annotated[Path, typer.Argument(help="catalog.parquet")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The model to write, e.g. protonet.model; of several, '{objective}-{seed}.model'."
        ),
    ],
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="What training minimizes, NAME or NAME(option=value); see shotproof list objectives. "
            "A recipe that has objectives of its own goes without. May be repeated: one model each."
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="The network; see shotproof list backbones. Default: that of --from, or the recipe's, or resnet12."
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
    attributes: Annotated[Path | None, typer.Option(help="attributes.parquet, for samplers that take it.")] = None,
    features: Annotated[Path | None, typer.Option(help="features.parquet, for samplers that take it.")] = None,
    way: Annotated[int | None, typer.Option(min=2, max=limits.WAY.most, help="Classes per task.")] = None,
    shot: Annotated[int | None, typer.Option(min=1, max=limits.SHOT.most, help="Support items per class.")] = None,
    query: Annotated[int | None, typer.Option(min=1, max=limits.QUERY.most, help="Query items per class.")] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=limits.EPOCHS.most, help="Rounds, each with a validation and a checkpoint."),
    ] = None,
    tasks: Annotated[int | None, typer.Option(min=1, max=limits.TASKS.most, help="Tasks per epoch.")] = None,
    tasks_per_update: Annotated[
        int | None, typer.Option(min=1, max=limits.MOST, help="Tasks of which an update has the mean loss.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=2, max=limits.BATCH.most, help="Items per update, of objectives on classes or views."),
    ] = None,
    optimizer: Annotated[Literal["sgd", "adam", "adamw"] | None, typer.Option(help=UNLESS)] = None,
    lr: Annotated[float | None, typer.Option(help="The learning rate at the start.")] = None,
    schedule: Annotated[Literal["constant", "cosine", "step"] | None, typer.Option(help=UNLESS)] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting, NAME=VALUE, e.g. weight_decay=0.001; may be repeated."),
    ] = None,
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
    workers: Workers = None,
    device: Device = None,
    cache: Cache = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Train a network for few shots into a model, which is an encoder (model:FILE) and a method (model:FILE).

    shotproof train catalog.parquet --split train --val-split val --objective protonet --backbone resnet12 --shot 5
    -o protonet.model

    The same command continues a training that was interrupted, from the last epoch that was finished.
    Several objectives or seeds, one model each, one per device with --engine ray:
    --seed 0 --seed 1 -o '{objective}-{seed}.model'
    """
    import time

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.runtime_options import make_runtime
    from shotproof.core.tables import check_output
    from shotproof.features.features import Features
    from shotproof.models.objective import objectives
    from shotproof.training.train import train as train_model
    from shotproof.training.train import train_trials

    started = time.monotonic()
    made = [objectives.make(one) for one in objective or []]  # misspelled: told before any file is read
    check_output(output)
    trials = _trials(made, seed or [0], output)
    named: dict[str, Any] = {"way": way, "shot": shot, "query": query, "epochs": epochs, "tasks": tasks}
    named |= {"tasks_per_update": tasks_per_update, "batch": batch, "optimizer": optimizer, "lr": lr}
    named |= {"schedule": schedule, "train_sampler": train_sampler}
    options = {
        "backbone": backbone,
        "split": split,
        "val_split": None if val_split == NO_SPLIT else val_split,
        "recipe": recipe,
        "from_model": start,
        "replace": replace,
        "attributes": None if attributes is None else Attributes.read(attributes),
        "features": None if features is None else Features.read(features),
        "runtime": make_runtime(workers, device, cache, progress, engine),
        **_settings(setting or []),
        **{name: value for name, value in named.items() if value is not None},
    }
    items = Catalog.read(catalog)
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
    from shotproof.core.errors import InputError
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


def _settings(given: list[str]) -> dict[str, Any]:
    """`NAME=VALUE` each, with values as in a spelling."""
    from shotproof.core.errors import InputError
    from shotproof.core.spelling import parse_call

    found: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--set {one}: expected NAME=VALUE, e.g. weight_decay=0.001")
        try:
            found |= parse_call(f"set({one})")[1]
        except InputError:
            found[name.strip()] = value  # text without quotes
    return found
