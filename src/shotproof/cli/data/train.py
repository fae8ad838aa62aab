"""`shotproof train`: models trained on a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import QUERY, SHOT, WAY, Settings, read_one, read_settings, sort_files
from shotproof.cli.console import printed_notes, say
from shotproof.core import limits
from shotproof.core.errors import InputError

if TYPE_CHECKING:
    from shotproof.models.objective import Objective
    from shotproof.training.train import Trial

NO_SPLIT = "none"


def train(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="A catalog; attributes and features for samplers that use them."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model to write, e.g. protonet.model; for several, '{objective}-{seed}.model'."
        ),
    ],
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="Training objective, NAME or NAME(option=value); see shotproof show objectives. Not needed for "
            "recipes with objectives of their own. Repeatable: one model each."
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(help="Network; see shotproof show backbones. Default: that of --from or the recipe, or resnet12."),
    ] = None,
    split: Annotated[str, typer.Option(help="Split to train on.")] = "train",
    val_split: Annotated[
        str, typer.Option(help="Split with other classes for validation after each epoch, or none for no validation.")
    ] = "val",
    recipe: Annotated[
        str | None, typer.Option(help="Named settings, e.g. fewstab-cub, or a complete training, shotproof.")
    ] = None,
    start: Annotated[Path | None, typer.Option("--from", help="Model to start from.")] = None,
    train_sampler: Annotated[str | None, typer.Option(help="Sampler of the training tasks. Default: random.")] = None,
    way: Annotated[int | None, WAY] = None,
    shot: Annotated[int | None, SHOT] = None,
    query: Annotated[int | None, QUERY] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, max=limits.EPOCHS.most, help="Epochs, each followed by validation and a checkpoint."),
    ] = None,
    tasks: Annotated[int | None, typer.Option(min=1, max=limits.TASKS.most, help="Tasks per epoch.")] = None,
    lr: Annotated[float | None, typer.Option(help="Initial learning rate.")] = None,
    setting: Settings = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            max=limits.SEED.most,
            help="Random seed of weights, tasks and augmentation. Default: 0. Repeatable: one model each.",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the model and checkpoint of another training.")
    ] = False,
) -> None:
    """Train a network for few-shot classification; the model is both an encoder and a method, model:FILE.

    shotproof train catalog.parquet --split train --val-split val --objective protonet --backbone resnet12 --shot 5
    -o protonet.model

    After an interruption, run the same command again to continue from the last finished epoch.
    Several objectives or seeds train one model each, on one device each with --engine ray:
    --seed 0 --seed 1 -o '{objective}-{seed}.model'
    """
    import time

    from shotproof.core.tables import check_output
    from shotproof.models.objective import objectives
    from shotproof.training.train import train as train_model
    from shotproof.training.train import train_trials

    started = time.monotonic()
    chosen_objectives = [
        objectives.make(spelling) for spelling in objective or []
    ]  # finds errors before files are read
    check_output(output)
    sorted_files = sort_files(files, ("catalog", "attributes", "features"))
    if not sorted_files["catalog"]:
        raise InputError("no catalog given: expected the catalog.parquet to train on")
    trials = _build_trials(chosen_objectives, seed or [0], output)
    flags: dict[str, Any] = {"way": way, "shot": shot, "query": query, "epochs": epochs, "tasks": tasks}
    flags |= {"lr": lr, "train_sampler": train_sampler}
    options = {
        "backbone": backbone,
        "split": split,
        "val_split": None if val_split == NO_SPLIT else val_split,
        "recipe": recipe,
        "from_model": start,
        "replace": replace,
        **{kind: read_one(sorted_files[kind], kind) for kind in ("attributes", "features")},
        **read_settings(setting or []),
        **{name: value for name, value in flags.items() if value is not None},
    }
    items = read_one(sorted_files["catalog"], "catalog")
    with printed_notes():
        if len(trials) == 1:
            trial = trials[0]
            models = [train_model(items, trial.objective, seed=trial.seed, output=trial.output, **options)]
        else:
            models = train_trials(items, trials, **options)
    for trial, model in zip(trials, models, strict=True):
        last = model.record.curve[-1]
        best = next(row for row in model.record.curve if row["epoch"] == model.record.best)
        validation = "" if best["accuracy"] is None else f", validation {best['accuracy']:.2f}%"
        say(
            f"{trial.output}: {model.name}, {len(model.record.classes)} classes, epoch {best['epoch']} of "
            f"{last['epoch']}{validation}, loss {best['loss']:.3f}; {time.monotonic() - started:.1f} s"
        )


def _build_trials(objectives: list[Objective[Any]], seeds: list[int], output: Path) -> list[Trial]:
    """Build a trial for each objective and seed, which replace `{objective}` and `{seed}` in the output's name."""
    from shotproof.pipeline.steps.steps import file_name
    from shotproof.training.train import Trial

    for placeholder, has_several in {"{objective}": len(objectives) > 1, "{seed}": len(seeds) > 1}.items():
        if has_several and placeholder not in output.name:
            raise InputError(f"--output {output}: to train several models, put {placeholder} in the name")

    def output_of(objective: Objective[Any] | None, seed: int) -> Path:
        spelling = "" if objective is None else file_name(str(objective))
        return output.with_name(output.name.replace("{objective}", spelling).replace("{seed}", str(seed)))

    chosen: list[Objective[Any] | None] = [*objectives] or [None]
    return [Trial(objective, seed, output_of(objective, seed)) for objective in chosen for seed in seeds]
