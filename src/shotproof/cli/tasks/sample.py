"""`shotproof sample`: from a catalog to a task set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import QUERY, SHOT, WAY, AsJson, Seed, read_one, sort_files
from shotproof.cli.console import say
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from shotproof.tasks.taskset import TaskSet

_NEEDED = {
    "attributes": "give attributes.parquet beside the catalog",
    "features": "give features.parquet beside the catalog",
    "like": "--like tasks.parquet",
}


def sample(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="A catalog; attributes and features, for samplers that take them."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The task set to write; of context, a folder.")],
    sampler: Annotated[
        str, typer.Option(help="NAME or NAME(option=value); see shotproof show samplers, shotproof show NAME.")
    ] = "fewstab",
    like: Annotated[Path | None, typer.Option(help="A task set whose classes and queries are taken over.")] = None,
    split: Annotated[str | None, typer.Option(help="The split to draw from, where there are several.")] = None,
    way: Annotated[int, WAY] = 5,
    shot: Annotated[int, SHOT] = 5,
    query: Annotated[int, QUERY] = 15,
    tasks: Annotated[
        int | None, typer.Option(min=1, max=limits.TASKS.most, help="Number of tasks: 600, or all of depletion.")
    ] = None,
    seed: Seed = 0,
    name: Annotated[str | None, typer.Option(help="What pages call the task set.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw few-shot tasks into a file that anybody can evaluate later.

    shotproof sample catalog.parquet attributes.parquet --sampler fewstab --split test --way 5 --shot 5 --query 15
    --tasks 3000 --seed 0 -o tasks.parquet
    """
    from shotproof.cli.console import print_json, told_warnings
    from shotproof.core.errors import InputError
    from shotproof.core.tables import check_output
    from shotproof.tasks.sampler import sample as draw_tasks
    from shotproof.tasks.sampler import samplers

    chosen = samplers.make(sampler)  # a misspelled name is told before any file is read
    together = chosen.name == "context"
    check_output(output, folder=together)
    given = {**sort_files(files, ("catalog", "attributes", "features")), "like": [like] if like else []}
    if not given["catalog"]:
        raise InputError("expected catalog.parquet, whose items the tasks are drawn from")
    for role in chosen.needs:
        if not given[role]:
            raise InputError(f"sampler '{chosen}' needs {role}: {_NEEDED[role]}")
    shape: dict[str, Any] = {
        "split": split,
        "way": way,
        "shot": shot,
        "query": query,
        "tasks": tasks,
        "seed": seed,
        "name": name,
    }
    with told_warnings():
        kinds = {"attributes": "attributes", "features": "features", "like": "tasks"}
        data = {role: read_one(given[role], kind) for role, kind in kinds.items() if given[role]}
        catalog = read_one(given["catalog"], "catalog")
        sets = chosen.sets(catalog)
        drawn = {label: draw_tasks(catalog, one, **shape, **data) for label, one in sets.items()}
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
    """Return the least and the largest number of ways, shots and queries."""
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
