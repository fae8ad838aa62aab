"""`shotproof sample`: from a catalog to a task set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shotproof.tasks.taskset import TaskSet


def sample(
    context: typer.Context,
    catalog: Annotated[Path, typer.Argument(help="catalog.parquet")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The task set to write; a folder with --sampler context.")
    ],
    sampler: Annotated[
        str,
        typer.Option(
            help="How tasks are drawn: fewstab, random, depletion, hardest, fastdiffsel, greedy, meta_dataset, "
            "semantic, shift, filter, iid, ood, hard_ood, clean, or a registered one; context: the four from iid on, "
            "matched."
        ),
    ] = "fewstab",
    attributes: Annotated[Path | None, typer.Option(help="attributes.parquet, for samplers that need it.")] = None,
    features: Annotated[Path | None, typer.Option(help="features.parquet, for samplers that need it.")] = None,
    like: Annotated[
        Path | None, typer.Option(help="A task set whose classes, ways, shots and queries are taken over.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="The split to draw from; needed where there is more than one.")
    ] = None,
    way: Annotated[int, typer.Option(help="Classes a task.")] = 5,
    shot: Annotated[int, typer.Option(help="Support items a class.")] = 5,
    query: Annotated[int, typer.Option(help="Query items a class.")] = 15,
    tasks: Annotated[
        int | None, typer.Option(help="Number of tasks: 600 unless given; depletion: all that the data gives.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Task t depends on the seed and on t alone.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes; the tasks are the same for any number.")] = 1,
    support: Annotated[
        str | None, typer.Option(help="fewstab: exclusive (default, SC3), attribute (SC2), random (SC1).")
    ] = None,
    query_selection: Annotated[
        str | None, typer.Option(help="fewstab: lowest (default, QC3), inter (QC2), intra (QC1).")
    ] = None,
    max_tries: Annotated[int | None, typer.Option(help="fewstab: tries a task before giving up (50,000).")] = None,
    context_column: Annotated[
        str | None, typer.Option(help="context samplers: the catalog's column with the contexts (context).")
    ] = None,
    clean_value: Annotated[
        str | None,
        typer.Option(help="context samplers: the context that means none; of a catalog by `shotproof mix`, known."),
    ] = None,
    no_hard_ood: Annotated[
        bool,
        typer.Option("--no-hard-ood", help="context samplers: do without hard_ood, where classes share few contexts."),
    ] = False,
    query_dirichlet: Annotated[
        float | None, typer.Option(help="random: unequal queries, class by class; the smaller, the less equal (2).")
    ] = None,
    class_distances: Annotated[
        Path | None, typer.Option(help="semantic: a tree, a distance matrix or class attributes.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="semantic: the lower, the nearer the classes (0.25).")
    ] = None,
    support_where: Annotated[
        str | None, typer.Option(help="shift: a condition on support items, e.g. blurry, or 'width > 100'.")
    ] = None,
    query_where: Annotated[
        str | None, typer.Option(help="shift: a condition on query items, e.g. 'view in (front, back)'.")
    ] = None,
    no_shift: Annotated[
        bool, typer.Option("--no-shift", help="shift: the matched set, with support by the query's condition.")
    ] = False,
    candidates: Annotated[int | None, typer.Option(help="filter: random tasks that one is chosen of (100).")] = None,
    mode: Annotated[
        str | None, typer.Option(help="fastdiffsel, greedy, hardest: hard (default) or easy supports.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="fastdiffsel: the length of a step (200).")] = None,
    steps: Annotated[int | None, typer.Option(help="fastdiffsel: the number of steps (1).")] = None,
    scale: Annotated[float | None, typer.Option(help="fastdiffsel, greedy: the scale of the logits (1).")] = None,
    rounds: Annotated[
        int | None, typer.Option(help="greedy: rounds over the support (2); hardest: rounds of pruning (1).")
    ] = None,
    normalise: Annotated[
        bool, typer.Option("--normalise", help="fastdiffsel, greedy, hardest: scale features to length 1 first.")
    ] = False,
    skip_small_classes: Annotated[
        bool,
        typer.Option("--skip-small-classes", help="Leave out classes with fewer than shot + query items."),
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-O", help="KEY=VALUE for a sampler of your own; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was made as JSON.")] = False,
) -> None:
    """Draw few-shot tasks into a file that anybody can evaluate later.

    shotproof sample catalog.parquet --sampler fewstab --attributes attributes.parquet --split test
    --way 5 --shot 5 --query 15 --tasks 3000 --seed 0 -o tasks.parquet
    """
    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.console import print_json
    from shotproof.features.features import Features
    from shotproof.specs import parse_options
    from shotproof.tasks.context_sets import sample_context
    from shotproof.tasks.sampler import sample as draw_tasks
    from shotproof.tasks.sampler import samplers
    from shotproof.tasks.taskset import TaskSet

    together = sampler == "context"
    one = "iid" if together else sampler
    samplers.factory(one)  # a misspelt name is told before any file is read
    given: dict[str, Any] = {
        "support": support,
        "query_selection": query_selection,
        "max_tries": max_tries,
        "context_column": context_column,
        "clean_value": clean_value,
        "hard_ood": False if no_hard_ood else None,
        "query_dirichlet": query_dirichlet,
        "class_distances": None if class_distances is None else str(class_distances),
        "temperature": temperature,
        "support_where": support_where,
        "query_where": query_where,
        "shifted": False if no_shift else None,
        "candidates": candidates,
        "mode": mode,
        "alpha": alpha,
        "steps": steps,
        "scale": scale,
        "rounds": rounds,
        "normalise": normalise or None,
        "skip_small_classes": skip_small_classes or None,
    }
    options = {name: value for name, value in given.items() if value is not None} | parse_options(option or [])
    files = {
        "attributes": (attributes, Attributes.read),
        "features": (features, Features.read),
        "like": (like, TaskSet.read),
    }
    for name, (path, read) in files.items():
        if path is not None and name in samplers.inputs(one):
            options[name] = read(path)
        elif path is not None:
            typer.echo(f"note: sampler '{sampler}' does not use {name}", err=True)
    design: dict[str, Any] = {
        "split": split,
        "way": way,
        "shot": shot,
        "query": query,
        "tasks": tasks,
        "seed": seed,
        "workers": workers,
    }
    given_catalog = Catalog.read(catalog)
    if together:
        drawn = sample_context(given_catalog, **design, **options)
    else:
        drawn = {sampler: draw_tasks(given_catalog, sampler, **design, **options)}
    _note_own_rules(context, sampler, design, drawn)
    for name, taskset in drawn.items():
        path = output / f"{name}.parquet" if together else output
        taskset.write(path)
        if not as_json:
            _tell(path, name, taskset)
    if as_json:
        told = {
            name: {"tasks": len(made), "digest": made.digest, **made.meta["summary"]} for name, made in drawn.items()
        }
        print_json(told if together else told[sampler])


def _note_own_rules(context: typer.Context, sampler: str, design: dict[str, Any], drawn: dict[str, TaskSet]) -> None:
    """Say which sizes were asked for and do not apply: those of samplers that draw or take over their own."""
    for name in ("way", "shot", "query"):
        made = {taskset.meta["made_by"].get(name) for taskset in drawn.values()}
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT" and made != {design[name]}:
            typer.echo(f"note: sampler '{sampler}' has its own rules: --{name} {design[name]} does not apply", err=True)


def _tell(path: Path, sampler: str, taskset: TaskSet) -> None:
    summary = taskset.meta["summary"]
    sizes = ", ".join(f"{low if low == high else f'{low} to {high}'} {name}" for name, low, high in _sizes(taskset))
    typer.echo(f"{path}: {len(taskset)} {sampler} tasks, {sizes}; digest {taskset.digest}")
    notes = [f"{name.replace('_', ' ')} {_brief(value)}" for name, value in summary.items() if value not in ([], 0)]
    if notes:
        typer.echo("  " + "; ".join(notes))


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
