"""`shotproof evaluate`: tasks and features to results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import AsJson, Seed, read_all, read_one, sort_files
from shotproof.cli.console import say
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shotproof.features.features import Features
    from shotproof.learners.method import Method
    from shotproof.results.results import Results


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="A task set, and the features of one or more encoders; or, for methods that need the items (chat, "
            "finetune), a task set and the catalog.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the results; of several features, a folder.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="<path or name>",
            help="The model that methods such as finetune or anil adapt, on the catalog's items: a file, or a "
            "pretrained backbone, lite0 or hf:NAME.",
        ),
    ] = None,
    tune_on: Annotated[
        Path | None,
        typer.Option(help="Validation tasks, tasks.parquet, on which the learning rate of adaptations is chosen."),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            help="A learning rate to choose from, with --tune-on; may be repeated. Default: the method's own."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="NAME(option=value), sklearn:CLASS(...), FILE.py:NAME(...), python:MODULE:NAME(...), model:FILE (a "
            "trained model's head), or all (those on vectors); may be repeated. Default: ncc, cosine, logistic, ridge, "
            "knn. See shotproof show methods.",
        ),
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--transform",
            "-t",
            help="A step of preprocessing, e.g. l2 or center(base='base.parquet'); may be repeated, applied in order. "
            "See shotproof show transforms.",
        ),
    ] = None,
    seed: Seed = 0,
    allow_seen: Annotated[
        bool, typer.Option("--allow-seen", help="Tasks may have classes that the encoder, a model, was trained on.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count how many queries of each class of each task each method labels correctly.

    Example: shotproof evaluate tasks.parquet features.parquet --method ncc --method "ridge(penalty=1)"
    -o results.parquet
    Example: shotproof evaluate tasks.parquet catalog.parquet --method "chat(model='qwen2.5-vl',
    url='http://localhost:8000/v1')" -o results.parquet
    Example: shotproof evaluate tasks.parquet catalog.parquet --model rfs.model --method finetune
    --tune-on val.parquet -o results.parquet
    """
    import time

    from shotproof.cli.console import print_json, print_table, told_notes, told_warnings
    from shotproof.core.errors import InputError
    from shotproof.core.tables import check_output
    from shotproof.evaluation.evaluate import evaluate as evaluate_tasks
    from shotproof.features.transforms import transform, transforms
    from shotproof.learners.method import DEFAULT_METHODS

    # What is misspelled, or cannot be written, is told before any file is read.
    methods, steps = _methods(method or DEFAULT_METHODS), [transforms.make(spelling) for spelling in step or ()]
    check_output(output, folder=len(files) > 2)
    given = sort_files(files, ("tasks", "features", "catalog"), several=("features",))
    if not given["tasks"]:
        raise InputError("expected a task set, tasks.parquet, beside the features or the catalog")
    if bool(given["catalog"]) == bool(given["features"]):
        raise InputError("give either features, or the catalog for methods that need the items, such as chat")
    if model is not None and not given["catalog"]:
        raise InputError("--model goes with the catalog: methods that adapt a network need the items")
    if given["catalog"] and step:
        raise InputError("--transform goes with features: methods that need the items take them as they are")
    items = read_one(given["catalog"], "catalog")
    with told_warnings():
        task_set = read_one(given["tasks"], "tasks")
        encoded = [transform(features, steps) for features in read_all(given["features"], "features")]
    written, summaries = _outputs(output, encoded), []
    on: Sequence[Features | None] = encoded or [None]
    for of_encoder, path in zip(on, written, strict=True):
        started = time.monotonic()
        with told_notes(), told_warnings():
            results = evaluate_tasks(
                task_set,
                of_encoder,
                methods,
                catalog=items,
                model=model,
                tune_on=read_one([tune_on] if tune_on else [], "tasks"),
                rates=rate or (),
                seed=seed,
                allow_seen=allow_seen,
            )
        results.write(path)
        seconds = time.monotonic() - started
        summaries.append({"encoder": results.record.features.classifier, **_summary(results, len(task_set), seconds)})
    if as_json:
        print_json(summaries[0] if len(summaries) == 1 else summaries)
        return
    say("95% interval: sampler (covers new tasks from the same items)", "")
    for summary, path in zip(summaries, written, strict=True):
        rows = [[row["method"], _percent(row["acc"]), _percent(row["wacc"])] for row in summary["methods"]]
        say(f"{path}: {summary['encoder']}, {counted(len(task_set), 'task')} in {summary['seconds']:.1f} s")
        print_table("", ["method", "Acc %", "wAcc %"], rows)


def _outputs(output: Path, encoded: Sequence[Features]) -> list[Path]:
    """Where the results of each encoder go: into the file, or of several into a folder, by the encoder's name."""
    from shotproof.core.errors import InputError
    from shotproof.pipeline.steps.steps import file_name

    if len(encoded) <= 1:
        return [output]
    if output.suffix:
        raise InputError(f"{output}: the results of {len(encoded)} features go into a folder, give one, e.g. results/")
    names = [file_name(features.name) for features in encoded]
    if len(set(names)) < len(names):
        raise InputError(f"the features are of encoders with the same name ({', '.join(names)}): evaluate each alone")
    return [output / f"{name}.parquet" for name in names]


def _methods(given: Sequence[str]) -> list[Method]:
    """Return the methods named; `all` stands for every registered one that works on vectors."""
    from shotproof.learners.method import make_method, methods

    every = [name for name in methods.names() if methods.get(name).needs == "vectors"] if "all" in given else []
    names = dict.fromkeys(name for one in given for name in (every if one == "all" else [one]))
    return [make_method(name) for name in names]


def _summary(results: Results, tasks: int, seconds: float) -> dict[str, Any]:
    """Return the printed numbers: in percent, with their intervals; a bound that does not exist is None."""
    from shotproof.stats.intervals import sampler_interval

    def described(values: Any) -> dict[str, float | None]:
        interval = sampler_interval(values)
        low, high = (None if bound != bound else bound for bound in (interval.low, interval.high))
        return {"mean": interval.mean, "low": low, "high": high}

    rows = []
    for name in results.methods:
        counts = results.counts(name)
        rows.append(
            {"method": name, "acc": described(counts.accuracy_by_task()), "wacc": described(counts.worst_by_task())}
        )
    return {
        "unit": "percent",
        "tasks": tasks,
        "seconds": seconds,
        "interval": "sampler",
        "level": 0.95,
        "methods": rows,
    }


def _percent(value: dict[str, Any]) -> str:
    """`58.31 ± 0.42`."""
    if value["low"] is None:
        return f"{value['mean']:.2f}"
    return f"{value['mean']:.2f} ± {(value['high'] - value['low']) / 2:.2f}"
