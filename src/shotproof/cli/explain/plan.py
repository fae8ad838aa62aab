"""`shotproof explain plan`: numbers of queries and tasks, planned from a pilot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shotproof.cli.arguments import AsJson, Level, files_of_kind
from shotproof.cli.console import print_table, say
from shotproof.core import limits
from shotproof.core.nouns import counted
from shotproof.core.records import UNKNOWN

if TYPE_CHECKING:
    from shotproof.catalog.catalog import Catalog
    from shotproof.planning.pilot import Pilot
    from shotproof.planning.task_plan import Plan

BAR_LENGTH = 40  # characters


def plan(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="A run folder; or results of a pilot (a few hundred tasks, at least 2 queries) and the catalog of the "
            "data to plan for.",
        ),
    ],
    split: Annotated[str | None, typer.Option(help="Split of the catalog. Default: the pilot's.")] = None,
    classes: Annotated[
        int | None, typer.Option(min=1, max=limits.MOST, help="Without a catalog: number of classes of the data.")
    ] = None,
    items: Annotated[
        int | None, typer.Option(min=1, max=limits.MOST, help="Without a catalog: number of items per class.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method to plan for. Default: the pilot's first.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Encoder to plan for. Default: all.")] = None,
    shot: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.SHOT.most,
            help="Shots to plan for, if there are several; or the shots of results that do not name them.",
        ),
    ] = None,
    query: Annotated[
        list[int] | None,
        typer.Option(min=1, max=limits.QUERY.most, help="Number of queries to show; repeatable."),
    ] = None,
    difference: Annotated[float, typer.Option(help="Difference to detect, in points.")] = 2.0,
    power: Annotated[float, typer.Option(help="Probability of detecting it.")] = 0.8,
    level: Level = 0.95,
    as_json: AsJson = False,
) -> None:
    """Plan from a pilot how many queries and tasks are needed, and count the tasks that the data allows.

    Example: shotproof explain plan pilot.parquet catalog.parquet --split test --difference 2
    """
    from shotproof.cli.console import print_json
    from shotproof.core.errors import InputError
    from shotproof.pipeline.read import read_inputs
    from shotproof.planning.pilot import pilots_of
    from shotproof.planning.statistical_power import check_power
    from shotproof.results.encoder_names import short_encoder_names
    from shotproof.stats.intervals import check_level

    check_level(level)
    check_power(power)
    catalogs = files_of_kind(files, "catalog")
    if (classes is None) != (items is None) or (catalogs and classes is not None):
        raise InputError("for the size of the data, expected either a catalog or both --classes and --items")
    inputs = read_inputs([*(file for file in files if file not in catalogs), *catalogs])
    plans = []
    for pilot in _select_pilots(pilots_of(inputs.results), encoder, shot):
        candidates = [
            catalog for catalog in inputs.catalogs if catalogs or catalog.digest == pilot.origin.design.catalog
        ]
        sizes = _class_sizes(pilot, candidates[-1] if candidates else None, split, classes, items)
        plans.append(_MethodPlan.of(pilot, method, shot, sizes, query, level))
    documents = [method_plan.to_json(difference, power) for method_plan in plans]
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
        return
    names = short_encoder_names(method_plan.pilot.origin.encoder for method_plan in plans)
    for method_plan, document in zip(plans, documents, strict=True):
        method_plan.print(document["comparisons"], difference, power, names[method_plan.pilot.origin.encoder])


def _select_pilots(pilots: list[Pilot], encoder: str | None, shot: int | None) -> list[Pilot]:
    """Return the pilots with this encoder and this number of shots, if these are given."""
    from shotproof.core.errors import InputError, UnknownName
    from shotproof.results.encoder_names import short_encoder_names

    names = short_encoder_names(pilot.origin.encoder for pilot in pilots)
    if encoder is not None and encoder not in {*names, *names.values()}:
        raise UnknownName("encoder of the pilot", encoder, list(names.values()))
    shots = [pilot.origin.design.shot for pilot in pilots]
    if shot is not None and None not in shots and shot not in shots:
        available = ", ".join(map(str, sorted(set(shots))))  # type: ignore[type-var]
        raise InputError(f"no pilot has {counted(shot, 'shot')}: pilots have {available}")
    return [
        pilot
        for pilot in pilots
        if encoder in (None, pilot.origin.encoder, names[pilot.origin.encoder])
        and (shot is None or pilot.origin.design.shot in (None, shot))
    ]


@dataclass(frozen=True)
class _MethodPlan:
    """Plan for one method from one pilot, for data with these class sizes."""

    pilot: Pilot
    method: str
    plan: Plan
    sizes: list[int] | None

    @classmethod
    def of(
        cls,
        pilot: Pilot,
        method: str | None,
        shot: int | None,
        sizes: list[int] | None,
        query: list[int] | None,
        level: float,
    ) -> _MethodPlan:
        """Compute the plan of a method, by default the pilot's first."""
        from shotproof.core.errors import InputError
        from shotproof.planning.task_plan import QUERIES
        from shotproof.planning.task_plan import plan as make_plan

        shot = pilot.origin.design.shot or shot
        if shot is None:
            raise InputError("the results do not name the number of shots: use --shot")
        method = method or pilot.results.methods[0]
        queries = sorted({*(query or QUERIES), pilot.query})
        task_plan = make_plan(
            pilot.moments(method), shot=shot, way=pilot.way, items=sizes, queries=queries, level=level
        )
        return cls(pilot, method, task_plan, sizes)

    def to_json(self, difference: float, power: float) -> dict[str, Any]:
        """Return the pilot, the plan and the numbers of tasks that detect a difference."""
        origin = self.pilot.origin
        design = {"tasks": self.pilot.tasks, "sampler": origin.sampler, "encoder": origin.encoder}
        sizes = {"way": self.pilot.way, "shot": self.plan.shot, "query": self.pilot.query}
        goal = {"difference": difference, "power": power, "comparisons": self._comparisons(difference, power)}
        interval = {"best_query_interval": self.best_query_interval and list(self.best_query_interval)}
        return {"pilot": {**design, **sizes}, "method": self.method, **self.plan.to_json(), **interval, **goal}

    @property
    def best_query_interval(self) -> tuple[float, float] | None:
        """Return the interval of the best number of queries, if the pilot allows one."""
        return self.pilot.best_query_interval(self.method, self.plan.shot, self.plan.level)

    def print(self, comparisons: list[dict[str, Any]], difference: float, power: float, encoder: str) -> None:
        """Print the plan, and the numbers of tasks that detect a difference."""
        pilot, task_plan, origin = self.pilot, self.plan, self.pilot.origin
        encoder_part = "" if encoder == UNKNOWN else f", encoder {encoder}"
        say(
            f"{self.method} on {counted(pilot.tasks, 'task')} ({origin.spelling}) of {counted(pilot.way, 'way')}, "
            f"{counted(task_plan.shot, 'shot')}, {counted(pilot.query, 'query', 'queries')}{encoder_part}: "
            f"{task_plan.moments.m1:.1%} correct"
        )
        _print_plan(task_plan, self.best_query_interval)
        title = f"tasks to detect {difference:g} points with power {power:.0%}"
        columns = ["methods", "queries", "tasks needed", "tasks available", "power with these"]
        print_table(title, columns, [[_format_cell(value) for value in row.values()] for row in comparisons])
        if origin.sampler not in (UNKNOWN, "random", "depletion"):
            say(f"The moments are those of {origin.sampler} tasks; available tasks are counted without replacement.")

    def _comparisons(self, difference: float, power: float) -> list[dict[str, Any]]:
        """Compute the tasks needed to distinguish the method from each other one, and from a method on other tasks."""
        from shotproof.planning.statistical_power import statistical_power, tasks_needed
        from shotproof.planning.task_plan import available_tasks

        rows = []
        pilot, task_plan, method = self.pilot, self.plan, self.method
        others = [other for other in pilot.results.methods if other != method]
        for other in [*others, None]:
            for query in sorted({pilot.query, task_plan.query or pilot.query}):
                paired = other is not None
                variance = pilot.difference_variance(method, other, query) if other else task_plan.variance.at(query)
                if variance is None:  # not estimable from the pilot for this number of queries
                    continue
                available = (
                    None if self.sizes is None else available_tasks(self.sizes, task_plan.way, task_plan.shot + query)
                )
                needed, reached_power = None, None  # methods that never differ: no number of tasks is enough
                if variance > 0:
                    needed = tasks_needed(difference, variance, level=task_plan.level, power=power, paired=paired)
                    if available is not None and available > 1:
                        reached_power = statistical_power(
                            difference, variance, available, level=task_plan.level, paired=paired
                        )
                name = f"{method} - {other}" if other else f"{method} - any method on different tasks"
                rows.append(
                    {"methods": name, "query": query, "needed": needed, "available": available, "power": reached_power}
                )
        return rows


def _class_sizes(
    pilot: Pilot, catalog: Catalog | None, split: str | None, classes: int | None, items: int | None
) -> list[int] | None:
    """Return the number of items of each class of the data to plan for; None if unknown."""
    from shotproof.tasks.pool import ItemPool

    if catalog is not None and classes is None and items is None:
        sizes: list[int] = ItemPool.of(catalog.in_split(split or pilot.origin.design.split)).sizes.tolist()
        return sizes
    if classes is None or items is None:
        return None
    return [items] * classes


def _print_plan(task_plan: Plan, interval: tuple[float, float] | None) -> None:
    """Print the moments, the best number of queries, and the half-widths as bars."""
    moments, variance, shot = task_plan.moments, task_plan.variance, task_plan.shot
    say(f"  m1 {moments.m1:.4f}, m2 {moments.m2:.4f}, m3 {moments.m3:.4f}")
    say(f"  alpha {variance.alpha:.3g}, beta {variance.beta(shot):.3g}, gamma {variance.gamma(shot):.3g}")
    if math.isinf(task_plan.best_query):
        say("  best number of queries: as large as the data allows (alpha is not positive)")
    else:
        bounds = "" if interval is None else f" [{interval[0]:.1f}, {interval[1]:.1f}] from this pilot"
        say(f"  best number of queries: sqrt(beta / alpha) = {task_plan.best_query:.1f}{bounds}")
    say()
    if not task_plan.curve:
        say("For available tasks and half-widths, add the catalog of the data, or --classes and --items.")
        say(*task_plan.reasons(), "")
        return
    say(f"{100 * task_plan.level:g}% interval of the mean over tasks without replacement: half-width in points")
    say("queries  tasks")
    widest = max(point.half_width or 0.0 for point in task_plan.curve)
    for point in task_plan.curve:
        line = f"{point.query:7}  {point.tasks:5}  "
        if point.half_width is None:
            line += "needs at least 2 tasks"
        else:
            bar = "#" * round(BAR_LENGTH * point.half_width / widest)
            line += f"{point.half_width:5.2f} {bar}{' narrowest' if point.query == task_plan.query else ''}"
        say(line)
    say(*task_plan.reasons(), "")


def _format_cell(value: float | str | None) -> str:
    """Format a cell: shares in percent, missing values as a dash."""
    if value is None:
        return "-"
    return f"{value:.0%}" if isinstance(value, float) else str(value)
