"""`shotproof sample`: from a catalog to a task set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.console import say
from shotproof.cli.runtime_options import Device, EngineName, Progress, Workers
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.tasks.taskset import TaskSet


def sample(
    context: typer.Context,
    catalog: Annotated[Path, typer.Argument(help="catalog.parquet")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The task set to write; of context, a folder.")],
    sampler: Annotated[
        str, typer.Option(help="NAME or NAME(option=value); see shotproof list samplers, shotproof show NAME.")
    ] = "fewstab",
    attributes: Annotated[Path | None, typer.Option(help="attributes.parquet, for samplers that take it.")] = None,
    features: Annotated[Path | None, typer.Option(help="features.parquet, for samplers that take it.")] = None,
    like: Annotated[Path | None, typer.Option(help="A task set whose classes and queries are taken over.")] = None,
    split: Annotated[str | None, typer.Option(help="The split to draw from, where there are several.")] = None,
    way: Annotated[int, typer.Option(min=2, max=limits.WAY.most, help="Classes per task.")] = 5,
    shot: Annotated[int, typer.Option(min=1, max=limits.SHOT.most, help="Support items per class.")] = 5,
    query: Annotated[int, typer.Option(min=1, max=limits.QUERY.most, help="Query items per class.")] = 15,
    tasks: Annotated[
        int | None, typer.Option(min=1, max=limits.TASKS.most, help="Number of tasks: 600, or all of depletion.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=limits.SEED.most, help="Task t depends on the seed and on t alone.")
    ] = 0,
    name: Annotated[str | None, typer.Option(help="What pages call the task set.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
    workers: Workers = None,
    device: Device = None,
    progress: Progress = None,
    engine: EngineName = None,
) -> None:
    """Draw few-shot tasks into a file that anybody can evaluate later.

    shotproof sample catalog.parquet --sampler fewstab --attributes attributes.parquet --split test
    --way 5 --shot 5 --query 15 --tasks 3000 --seed 0 -o tasks.parquet
    """
    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.console import print_json, told_warnings
    from shotproof.cli.runtime_options import make_runtime
    from shotproof.core.errors import InputError
    from shotproof.core.tables import check_output
    from shotproof.features.features import Features
    from shotproof.tasks.sampler import sample as draw_tasks
    from shotproof.tasks.sampler import samplers
    from shotproof.tasks.taskset import TaskSet

    chosen = samplers.make(sampler)  # a misspelled name is told before any file is read
    for role, path in (("attributes", attributes), ("features", features), ("like", like)):
        if role in chosen.needs and path is None:
            raise InputError(f"sampler '{chosen}' needs {role}: --{role} {role}.parquet")
    together = chosen.name == "context"
    check_output(output, folder=together)
    files: dict[str, tuple[Path | None, Any]] = {
        "attributes": (attributes, Attributes.read),
        "features": (features, Features.read),
        "like": (like, TaskSet.read),
    }
    shape: dict[str, Any] = {
        "split": split,
        "way": way,
        "shot": shot,
        "query": query,
        "tasks": tasks,
        "seed": seed,
        "name": name,
    }
    with make_runtime(workers, device, None, progress, engine), told_warnings():
        data = {role: read(path) for role, (path, read) in files.items() if path is not None}
        given = Catalog.read(catalog)
        sets = chosen.sets(given)
        drawn = {label: draw_tasks(given, one, **shape, **data) for label, one in sets.items()}
    _note_own_rules(context, sampler, drawn)
    for label, taskset in drawn.items():
        path = output / f"{label}.parquet" if together else output
        taskset.write(path)
        if not as_json:
            _tell(path, taskset)
    if as_json:
        told = {
            label: {"tasks": len(made), "digest": made.digest, **made.record.summary} for label, made in drawn.items()
        }
        print_json(told if together else next(iter(told.values())))


def _note_own_rules(context: typer.Context, sampler: str, drawn: dict[str, TaskSet]) -> None:
    """Say which sizes were asked for and do not apply: those of samplers that draw or take over their own."""
    for name in ("way", "shot", "query"):
        source, asked = context.get_parameter_source(name), context.params[name]
        made = {getattr(taskset.record, name) for taskset in drawn.values()}
        if source is not None and source.name != "DEFAULT" and made != {asked}:
            say(f"note: sampler '{sampler}' has its own rules: --{name} {asked} does not apply", err=True)


def _tell(path: Path, taskset: TaskSet) -> None:
    sizes = ", ".join(f"{low if low == high else f'{low} to {high}'} {name}" for name, low, high in _sizes(taskset))
    say(f"{path}: {counted(len(taskset), f'{taskset.record.sampler} task')}, {sizes}; digest {taskset.digest}")
    summary = taskset.record.summary.items()
    notes = [f"{name.replace('_', ' ')} {_brief(value)}" for name, value in summary if value not in ([], 0)]
    if notes:
        say("  " + "; ".join(notes))


def _sizes(taskset: TaskSet) -> list[tuple[str, int, int]]:
    """The least and the largest number of ways, shots and queries."""
    import numpy as np
    import pyarrow.compute as pc

    shots, queries = (pc.list_value_length(taskset.table.column(name)) for name in ("support", "query"))
    counts = {"ways": np.diff(taskset.starts), "shots": shots.to_numpy(), "queries": queries.to_numpy()}
    return [(name, int(values.min()), int(values.max())) for name, values in counts.items()]


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return f"{len(value)} ({', '.join(map(str, value[:3]))}{', ...' if len(value) > 3 else ''})"
    return str(value)
