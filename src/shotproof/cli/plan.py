"""`shotproof plan`: from a pilot to the number of queries and tasks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shotproof.stats.pilot import Pilot
    from shotproof.stats.plan import Plan

BAR = 40  # characters of the longest bar


def plan(
    pilot: Annotated[Path, typer.Argument(help="results.parquet of a pilot: a few hundred tasks, 2 queries or more.")],
    catalog: Annotated[Path | None, typer.Option(help="The data to plan for: catalog.parquet.")] = None,
    split: Annotated[str | None, typer.Option(help="Its split; the pilot's unless given.")] = None,
    classes: Annotated[int | None, typer.Option(help="Without a catalog: the number of classes of the data.")] = None,
    items: Annotated[int | None, typer.Option(help="Without a catalog: the items of each class.")] = None,
    method: Annotated[str | None, typer.Option(help="The method to plan for; the pilot's first unless given.")] = None,
    shot: Annotated[int | None, typer.Option(help="The pilot's shots, where its file does not say.")] = None,
    query: Annotated[list[int] | None, typer.Option(help="A number of queries to show; may be repeated.")] = None,
    difference: Annotated[float, typer.Option(help="The difference to tell apart, in percent points.")] = 2.0,
    power: Annotated[float, typer.Option(help="With what chance to tell it apart.")] = 0.8,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON, in percent points.")] = False,
) -> None:
    """Say from a pilot how many queries and tasks are needed, and how many tasks the data has without replacement.

    Example: shotproof plan pilot.parquet --catalog catalog.parquet --split test --difference 2
    """
    from shotproof.cli.console import print_json, print_table
    from shotproof.errors import InputError
    from shotproof.evaluation.results import Results
    from shotproof.stats.pilot import Pilot
    from shotproof.stats.plan import QUERIES
    from shotproof.stats.plan import plan as make_plan
    from shotproof.stats.power import require_share

    require_share("level", level)
    require_share("power", power)
    read = Pilot.of(Results.read(pilot))
    shot = read.made_by("shot") if shot is None else shot
    if not isinstance(shot, int):
        raise InputError(f"{pilot}: its metadata do not say how many shots the tasks have: give --shot")
    sizes = _sizes(read, catalog, split, classes, items)
    chosen = method or read.results.methods[0]
    shown = sorted({*(query or QUERIES), read.query})
    made = make_plan(read.moments(chosen), shot=shot, way=read.way, items=sizes, queries=shown, level=level)
    comparisons = _comparisons(read, chosen, made, sizes, difference / 100, power)
    if as_json:
        design = {"tasks": read.tasks, "sampler": read.made_by("sampler"), "way": read.way, "shot": shot}
        goal = {"difference": difference, "power": power, "comparisons": comparisons}
        print_json({"pilot": {**design, "query": read.query}, "method": chosen, **made.to_json(), **goal})
        return
    sampler = read.made_by("sampler") or "unknown"
    typer.echo(
        f"{chosen} on {read.tasks} tasks ({sampler}) of {read.way} ways, {shot} shots, {read.query} queries: "
        f"{made.moments.m1:.1%} correct"
    )
    _print_plan(made)
    title = f"tasks to tell {difference:g} points apart with power {power:.0%}"
    columns = ["methods", "queries", "tasks needed", "the data has", "its power"]
    print_table(title, columns, [[_cell(value) for value in row.values()] for row in comparisons])
    if sampler not in ("unknown", "random", "depletion"):
        typer.echo(f"The moments are those of {sampler} tasks; the data's tasks are counted without replacement.")


def _sizes(
    pilot: Pilot, catalog: Path | None, split: str | None, classes: int | None, items: int | None
) -> list[int] | None:
    """The items of each class of the data to plan for; None where nothing is known of it."""
    from shotproof.catalog.catalog import Catalog
    from shotproof.errors import InputError
    from shotproof.tasks.pool import Pool

    if catalog is not None and classes is None and items is None:
        sizes: list[int] = Pool.of(Catalog.read(catalog).in_split(split or pilot.made_by("split"))).sizes.tolist()
        return sizes
    if catalog is not None or (classes is None) != (items is None):
        raise InputError("the data's size: expected --catalog, or --classes and --items together")
    if classes is None or items is None:
        return None
    if classes < 1 or items < 1:
        raise InputError(f"expected at least 1 class and 1 item, found --classes {classes} --items {items}")
    return [items] * classes


def _comparisons(
    pilot: Pilot, method: str, made: Plan, sizes: list[int] | None, difference: float, chance: float
) -> list[dict[str, Any]]:
    """How many tasks tell the method from each other one of the pilot, and from one that is run on other tasks."""
    from shotproof.stats.plan import available_tasks
    from shotproof.stats.power import power, tasks_needed

    rows = []
    others = [other for other in pilot.results.methods if other != method]
    for other in [*others, None]:
        for query in sorted({pilot.query, made.query or pilot.query}):
            paired = other is not None
            variance = pilot.difference_variance(method, other, query) if other else made.variance.at(query)
            if variance is None:  # the pilot cannot say for this number of queries
                continue
            has = None if sizes is None else available_tasks(sizes, made.way, made.shot + query)
            needed, reached = None, None  # two methods that never differ: no number of tasks will do
            if variance > 0:
                needed = tasks_needed(difference, variance, level=made.level, chance=chance, paired=paired)
                if has is not None and has > 1:
                    reached = power(difference, variance, has, level=made.level, paired=paired)
            name = f"{method} - {other}" if other else f"{method} - one on other tasks"
            rows.append({"methods": name, "query": query, "needed": needed, "available": has, "power": reached})
    return rows


def _print_plan(made: Plan) -> None:
    """Print the moments, the best number of queries, and the half-widths as bars."""
    moments, variance, shot = made.moments, made.variance, made.shot
    typer.echo(f"  m1 {moments.m1:.4f}, m2 {moments.m2:.4f}, m3 {moments.m3:.4f}")
    typer.echo(f"  alpha {variance.alpha:.3g}, beta {variance.beta(shot):.3g}, gamma {variance.gamma(shot):.3g}")
    if math.isinf(made.best_query):
        typer.echo("  best number of queries: as large as the data allows (alpha is not above 0)")
    else:
        typer.echo(f"  best number of queries: sqrt(beta / alpha) = {made.best_query:.1f}")
    typer.echo()
    if not made.curve:
        typer.echo("Give the data (--catalog, or --classes and --items) to see its tasks and half-widths.\n")
        return
    typer.echo(f"{100 * made.level:g}% interval of the mean over tasks without replacement: half-width in points")
    typer.echo("queries  tasks")
    widest = max(point.half_width or 0.0 for point in made.curve)
    for point in made.curve:
        line = f"{point.query:7}  {point.tasks:5}  "
        if point.half_width is None:
            line += "needs at least 2 tasks"
        else:
            bar = "#" * round(BAR * point.half_width / widest)
            line += f"{100 * point.half_width:5.2f} {bar}{' narrowest' if point.query == made.query else ''}"
        typer.echo(line)
    typer.echo()


def _cell(value: float | str | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0%}" if isinstance(value, float) else str(value)
