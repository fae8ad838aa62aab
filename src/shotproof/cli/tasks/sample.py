"""`shotproof sample`: task sets drawn from a catalog."""

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
    "attributes": "add attributes.parquet to the files",
    "features": "add features.parquet to the files",
    "like": "use --like tasks.parquet",
}


def sample(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="A catalog; attributes and features for samplers that use them."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Task set to write; for the sampler context, a folder.")
    ],
    sampler: Annotated[
        str, typer.Option(help="NAME or NAME(option=value); see shotproof show samplers and shotproof show NAME.")
    ] = "fewstab",
    like: Annotated[Path | None, typer.Option(help="Task set whose classes and queries are reused.")] = None,
    split: Annotated[str | None, typer.Option(help="Split to draw from, if there are several.")] = None,
    way: Annotated[int, WAY] = 5,
    shot: Annotated[int, SHOT] = 5,
    query: Annotated[int, QUERY] = 15,
    tasks: Annotated[
        int | None,
        typer.Option(min=1, max=limits.TASKS.most, help="Number of tasks. Default: 600, or all for depletion."),
    ] = None,
    seed: Seed = 0,
    name: Annotated[str | None, typer.Option(help="Name of the task set on pages.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw few-shot tasks into a file, to evaluate any classifier on them.

    shotproof sample catalog.parquet attributes.parquet --sampler fewstab --split test --way 5 --shot 5 --query 15
    --tasks 3000 --seed 0 -o tasks.parquet
    """
    from shotproof.cli.console import print_json, printed_warnings
    from shotproof.core.errors import InputError
    from shotproof.core.tables import check_output
    from shotproof.tasks.sampler import sample as draw_tasks
    from shotproof.tasks.sampler import samplers

    chosen = samplers.make(sampler)  # finds errors before files are read
    is_group = chosen.name == "context"
    check_output(output, folder=is_group)
    sorted_files = {**sort_files(files, ("catalog", "attributes", "features")), "like": [like] if like else []}
    if not sorted_files["catalog"]:
        raise InputError("no catalog given: expected the catalog.parquet to draw tasks from")
    for role in chosen.needs:
        if not sorted_files[role]:
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
    with printed_warnings():
        kinds = {"attributes": "attributes", "features": "features", "like": "tasks"}
        data = {role: read_one(sorted_files[role], kind) for role, kind in kinds.items() if sorted_files[role]}
        catalog = read_one(sorted_files["catalog"], "catalog")
        sets = chosen.sets(catalog)
        drawn = {label: draw_tasks(catalog, set_sampler, **shape, **data) for label, set_sampler in sets.items()}
    _note_ignored_sizes(context, sampler, drawn)
    for label, taskset in drawn.items():
        path = output / f"{label}.parquet" if is_group else output
        taskset.write(path)
        if not as_json:
            _print_taskset(path, taskset)
    if as_json:
        documents = {
            label: {"tasks": len(taskset), "digest": taskset.digest, **taskset.record.summary}
            for label, taskset in drawn.items()
        }
        print_json(documents if is_group else next(iter(documents.values())))


def _note_ignored_sizes(context: typer.Context, sampler: str, drawn: dict[str, TaskSet]) -> None:
    """Print which requested sizes do not apply, because the sampler draws or copies its own."""
    for name in ("way", "shot", "query"):
        source, requested = context.get_parameter_source(name), context.params[name]
        drawn_sizes = {getattr(taskset.record, name) for taskset in drawn.values()}
        if source is not None and source.name != "DEFAULT" and drawn_sizes != {requested}:
            say(f"note: sampler '{sampler}' determines its own sizes: --{name} {requested} does not apply", err=True)


def _print_taskset(path: Path, taskset: TaskSet) -> None:
    """Print the size of a task set and the summary of its sampler."""
    sizes = ", ".join(f"{low if low == high else f'{low} to {high}'} {name}" for name, low, high in _sizes(taskset))
    say(f"{path}: {counted(len(taskset), f'{taskset.record.sampler} task')}, {sizes}; digest {taskset.digest}")
    summary = taskset.record.summary.items()
    notes = [f"{name.replace('_', ' ')} {_brief(value)}" for name, value in summary if value not in ([], 0)]
    if notes:
        say("  " + "; ".join(notes))


def _sizes(taskset: TaskSet) -> list[tuple[str, int, int]]:
    """Return the smallest and largest numbers of ways, shots and queries."""
    import numpy as np
    import pyarrow.compute as pc

    shots, queries = (pc.list_value_length(taskset.table.column(name)) for name in ("support", "query"))
    counts = {"ways": np.diff(taskset.starts), "shots": shots.to_numpy(), "queries": queries.to_numpy()}
    return [(name, int(values.min()), int(values.max())) for name, values in counts.items()]


def _brief(value: Any) -> str:
    """Return a value as a short text."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return f"{len(value)} ({', '.join(map(str, value[:3]))}{', ...' if len(value) > 3 else ''})"
    return str(value)
