"""`shotproof evaluate`: tasks and features to results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shotproof.evaluation.results import Results


def evaluate(
    tasks: Annotated[Path, typer.Argument(help="The task set, tasks.parquet.")],
    features: Annotated[Path, typer.Option("--features", "-f", help="The items' features, features.parquet.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the results.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", "-m", help="NAME, NAME(option=value) or sklearn:CLASS(...); may be repeated. Default: all."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda:0, or cuda for all GPUs. Default: all GPUs where there are any.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For methods that draw random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Count how many queries of each class of each task each method labels correctly.

    Example: shotproof evaluate tasks.parquet --features features.parquet --method ncc --method "ridge(penalty=1)"
    -o results.parquet
    """
    import time
    import warnings

    from shotproof.cli.console import print_json, print_table
    from shotproof.evaluation.evaluate import evaluate as evaluate_tasks
    from shotproof.features.features import Features
    from shotproof.methods.method import DEFAULT_METHODS
    from shotproof.tasks.taskset import TaskSet

    task_set, read_features = TaskSet.read(tasks), Features.read(features)
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        results = evaluate_tasks(task_set, read_features, method or DEFAULT_METHODS, device=device, seed=seed)
    seconds = time.monotonic() - started
    results.write(output)
    for warning in noted:
        typer.echo(f"warning: {warning.message}", err=True)
    summary = _summary(results, len(task_set), seconds)
    if as_json:
        print_json(summary)
        return
    typer.echo(
        f"{len(task_set)} tasks in {seconds:.1f} s; 95% interval: sampler (covers new tasks from the same items)\n"
    )
    rows = [[row["method"], _percent(row["acc"]), _percent(row["wacc"])] for row in summary["methods"]]
    print_table("", ["method", "Acc %", "wAcc %"], rows)


def _summary(results: Results, tasks: int, seconds: float) -> dict[str, Any]:
    """The printed numbers: shares between 0 and 1, with their intervals; a bound that does not exist is None."""
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
    return {"tasks": tasks, "seconds": seconds, "interval": "sampler", "level": 0.95, "methods": rows}


def _percent(value: dict[str, Any]) -> str:
    """`58.31 ± 0.42`, in percent."""
    if value["low"] is None:
        return f"{100 * value['mean']:.2f}"
    return f"{100 * value['mean']:.2f} ± {50 * (value['high'] - value['low']):.2f}"
