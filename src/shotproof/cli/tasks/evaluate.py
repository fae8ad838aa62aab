"""`shotproof evaluate`: results of methods on a task set."""

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
    from shotproof.tasks.taskset import TaskSet


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="A task set and the features of one or more encoders; for methods that need the items (chat, "
            "finetune), a task set and the catalog.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Results file to write; for several features, a folder.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="<path or name>",
            help="Model that methods such as finetune or anil adapt on the catalog's items: a file, or a pretrained "
            "backbone, lite0 or hf:NAME.",
        ),
    ] = None,
    tune_on: Annotated[
        Path | None,
        typer.Option(help="Validation tasks, tasks.parquet, to choose the learning rate of adaptation."),
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="Learning rate to choose from, with --tune-on; repeatable. Default: the method's own."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="NAME(option=value), sklearn:CLASS(...), FILE.py:NAME(...), python:MODULE:NAME(...), model:FILE (the "
            "head of a trained model), or all (all methods for vectors); repeatable. Default: ncc, cosine, logistic, "
            "ridge, knn. See shotproof show methods.",
        ),
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(
            "--transform",
            "-t",
            help="Preprocessing step, e.g. l2 or center(base='base.parquet'); repeatable, applied in order. See "
            "shotproof show transforms.",
        ),
    ] = None,
    seed: Seed = 0,
    allow_seen: Annotated[
        bool, typer.Option("--allow-seen", help="Allow tasks with classes that the model was trained on.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate methods on tasks: count the correctly classified queries of every class and task.

    Example: shotproof evaluate tasks.parquet features.parquet --method ncc --method "ridge(penalty=1)"
    -o results.parquet
    Example: shotproof evaluate tasks.parquet catalog.parquet --method "chat(model='qwen2.5-vl',
    url='http://localhost:8000/v1')" -o results.parquet
    Example: shotproof evaluate tasks.parquet catalog.parquet --model rfs.model --method finetune
    --tune-on val.parquet -o results.parquet
    """
    import time

    from shotproof.cli.console import print_json, print_table, printed_notes, printed_warnings
    from shotproof.core.errors import InputError
    from shotproof.core.tables import check_output
    from shotproof.evaluation.evaluate import evaluate as evaluate_tasks
    from shotproof.features.transforms import transform, transforms
    from shotproof.learners.method import DEFAULT_METHODS

    # Misspelled names and unwritable outputs are found before any file is read.
    methods, steps = _make_methods(method or DEFAULT_METHODS), [transforms.make(spelling) for spelling in step or ()]
    check_output(output, folder=len(files) > 2)
    sorted_files = sort_files(files, ("tasks", "features", "catalog"), several=("features",))
    if not sorted_files["tasks"]:
        raise InputError("no task set given: expected tasks.parquet, and features or the catalog")
    if bool(sorted_files["catalog"]) == bool(sorted_files["features"]):
        raise InputError("expected either features, or the catalog for methods that need the items, such as chat")
    if model is not None and not sorted_files["catalog"]:
        raise InputError("--model needs the catalog: methods that adapt a network need the items")
    if sorted_files["catalog"] and step:
        raise InputError("--transform needs features: methods that need the items use them unchanged")
    items = read_one(sorted_files["catalog"], "catalog")
    with printed_warnings():
        task_set = read_one(sorted_files["tasks"], "tasks")
        feature_sets = [transform(features, steps) for features in read_all(sorted_files["features"], "features")]
    for encoded in feature_sets:
        _require_changed_items(task_set, encoded, sorted_files["tasks"][0])
    outputs, summaries = _output_paths(output, feature_sets), []
    evaluated_features: Sequence[Features | None] = feature_sets or [None]
    for features, path in zip(evaluated_features, outputs, strict=True):
        started = time.monotonic()
        with printed_notes(), printed_warnings():
            results = evaluate_tasks(
                task_set,
                features,
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
        summaries.append({"encoder": results.record.features.classifier, **_summarize(results, len(task_set), seconds)})
    if as_json:
        print_json(summaries[0] if len(summaries) == 1 else summaries)
        return
    say("95% interval: sampler (covers new tasks from the same items)", "")
    for summary, path in zip(summaries, outputs, strict=True):
        rows = [
            [row["method"], _format_percent(row["acc"]), _format_percent(row["wacc"])] for row in summary["methods"]
        ]
        say(f"{path}: {summary['encoder']}, {counted(len(task_set), 'task')} in {summary['seconds']:.1f} s")
        print_table("", ["method", "Acc %", "wAcc %"], rows)


def _require_changed_items(tasks: TaskSet, features: Features, file: Path) -> None:
    """Raise an error that says how to encode the changed items of tasks, if the features lack some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from shotproof.core.errors import Mismatch
    from shotproof.evaluation.batches import items_of
    from shotproof.tasks.taskset import SIDES

    def missing(items: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.unique(items.filter(pc.invert(pc.is_in(items, value_set=features.table.column("item")))))

    unchanged = [pc.list_flatten(tasks.table.column(side)) for side in SIDES] if tasks.is_changed else []
    if not unchanged or any(len(missing(items)) for items in unchanged):  # features of another catalog
        return
    lacking = missing(items_of(tasks))
    if len(lacking):
        skipped = pc.is_in(lacking, value_set=pa.array(features.record.skipped, pa.string()))
        encoder = features.record.encoder or features.name
        hint = f'encode them too, shotproof encode CATALOG --encoder "{encoder}" --tasks {file}'
        if pc.any(skipped).as_py():
            hint = "they were encoded with --skip-bad, and could not be read: repair the files that encode names, or "
            hint += "draw the tasks from a catalog without them"
        raise Mismatch(
            f"the features lack {counted(len(lacking), 'changed item')} of {file}, e.g. '{lacking[0].as_py()}': {hint}"
        )


def _output_paths(output: Path, feature_sets: Sequence[Features]) -> list[Path]:
    """Return the file for the results of each encoder: the output, or files in it named after several encoders."""
    from shotproof.core.errors import InputError
    from shotproof.pipeline.steps.steps import file_name

    if len(feature_sets) <= 1:
        return [output]
    if output.suffix:
        raise InputError(f"{output}: expected a folder for the results of {len(feature_sets)} features, e.g. results/")
    names = [file_name(features.name) for features in feature_sets]
    if len(set(names)) < len(names):
        raise InputError(
            f"several features are from encoders of the same name ({', '.join(names)}): evaluate them one at a time"
        )
    return [output / f"{name}.parquet" for name in names]


def _make_methods(spellings: Sequence[str]) -> list[Method]:
    """Build methods from spellings; `all` stands for all registered methods for vectors."""
    from shotproof.learners.method import make_method, methods

    all_names = [name for name in methods.names() if methods.get(name).needs == "vectors"] if "all" in spellings else []
    names = dict.fromkeys(name for spelling in spellings for name in (all_names if spelling == "all" else [spelling]))
    return [make_method(name) for name in names]


def _summarize(results: Results, tasks: int, seconds: float) -> dict[str, Any]:
    """Return the printed numbers, in percent with their intervals; missing bounds are None."""
    from shotproof.stats.intervals import sampler_interval

    def describe(values: Any) -> dict[str, float | None]:
        interval = sampler_interval(values)
        low, high = (None if bound != bound else bound for bound in (interval.low, interval.high))
        return {"mean": interval.mean, "low": low, "high": high}

    rows = []
    for name in results.methods:
        counts = results.counts(name)
        rows.append(
            {"method": name, "acc": describe(counts.accuracy_by_task()), "wacc": describe(counts.worst_by_task())}
        )
    return {
        "unit": "percent",
        "tasks": tasks,
        "seconds": seconds,
        "interval": "sampler",
        "level": 0.95,
        "methods": rows,
    }


def _format_percent(value: dict[str, Any]) -> str:
    """Format a number with its interval, `58.31 ± 0.42`."""
    if value["low"] is None:
        return f"{value['mean']:.2f}"
    return f"{value['mean']:.2f} ± {(value['high'] - value['low']) / 2:.2f}"
