"""`shotproof explain plan`: from a pilot to the number of queries and tasks."""

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

BAR = 40  # characters of the longest bar


def plan(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="A run's folder; or results of a pilot (a few hundred tasks, 2 queries or more) and the catalog of "
            "the data to plan for.",
        ),
    ],
    split: Annotated[str | None, typer.Option(help="Of the catalog. Default: the pilot's.")] = None,
    classes: Annotated[
        int | None, typer.Option(min=1, max=limits.MOST, help="Without a catalog: the number of classes of the data.")
    ] = None,
    items: Annotated[
        int | None, typer.Option(min=1, max=limits.MOST, help="Without a catalog: the items of each class.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="The method to plan for; the pilot's first unless given.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Of several encoders, the one to plan for; all.")] = None,
    shot: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.SHOT.most,
            help="Of several designs, that of so many shots; or the shots of a file without them.",
        ),
    ] = None,
    query: Annotated[
        list[int] | None,
        typer.Option(min=1, max=limits.QUERY.most, help="A number of queries to show; may be repeated."),
    ] = None,
    difference: Annotated[float, typer.Option(help="The difference to tell apart, in points.")] = 2.0,
    power: Annotated[float, typer.Option(help="With what probability to tell it apart.")] = 0.8,
    level: Level = 0.95,
    as_json: AsJson = False,
) -> None:
    """Say from a pilot how many queries and tasks are needed, and how many tasks the data has without replacement.

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
        raise InputError("the data's size: expected a catalog, or --classes and --items together")
    inputs = read_inputs([*(file for file in files if file not in catalogs), *catalogs])
    planned = []
    for read in _chosen(pilots_of(inputs.results), encoder, shot):
        of_data = [catalog for catalog in inputs.catalogs if catalogs or catalog.digest == read.origin.design.catalog]
        sizes = _sizes(read, of_data[-1] if of_data else None, split, classes, items)
        planned.append(_Planned.of(read, method, shot, sizes, query, level))
    documents = [one.to_json(difference, power) for one in planned]
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
        return
    names = short_encoder_names(one.pilot.origin.encoder for one in planned)
    for one, document in zip(planned, documents, strict=True):
        one.print(document["comparisons"], difference, power, names[one.pilot.origin.encoder])


def _chosen(pilots: list[Pilot], encoder: str | None, shot: int | None) -> list[Pilot]:
    """Return the pilots of this encoder and number of shots, where these are given."""
    from shotproof.core.errors import InputError, UnknownName
    from shotproof.results.encoder_names import short_encoder_names

    names = short_encoder_names(pilot.origin.encoder for pilot in pilots)
    if encoder is not None and encoder not in {*names, *names.values()}:
        raise UnknownName("encoder of the pilot", encoder, list(names.values()))
    shots = [pilot.origin.design.shot for pilot in pilots]
    if shot is not None and None not in shots and shot not in shots:
        known = ", ".join(map(str, sorted(set(shots))))  # type: ignore[type-var]
        raise InputError(f"no pilot has {counted(shot, 'shot')}: there are some of {known}")
    return [
        pilot
        for pilot in pilots
        if encoder in (None, pilot.origin.encoder, names[pilot.origin.encoder])
        and (shot is None or pilot.origin.design.shot in (None, shot))
    ]


@dataclass(frozen=True)
class _Planned:
    """A plan from one pilot, for one method, on data of these sizes."""

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
    ) -> _Planned:
        from shotproof.core.errors import InputError
        from shotproof.planning.task_plan import QUERIES
        from shotproof.planning.task_plan import plan as make_plan

        shot = pilot.origin.design.shot or shot
        if shot is None:
            raise InputError("the results do not say how many shots their tasks have: give --shot")
        chosen = method or pilot.results.methods[0]
        shown = sorted({*(query or QUERIES), pilot.query})
        made = make_plan(pilot.moments(chosen), shot=shot, way=pilot.way, items=sizes, queries=shown, level=level)
        return cls(pilot, chosen, made, sizes)

    def to_json(self, difference: float, power: float) -> dict[str, Any]:
        origin = self.pilot.origin
        design = {"tasks": self.pilot.tasks, "sampler": origin.sampler, "encoder": origin.encoder}
        sizes = {"way": self.pilot.way, "shot": self.plan.shot, "query": self.pilot.query}
        goal = {"difference": difference, "power": power, "comparisons": self._comparisons(difference, power)}
        interval = {"best_query_interval": self.best_query_interval and list(self.best_query_interval)}
        return {"pilot": {**design, **sizes}, "method": self.method, **self.plan.to_json(), **interval, **goal}

    @property
    def best_query_interval(self) -> tuple[float, float] | None:
        """How well the pilot knows the best number of queries."""
        return self.pilot.best_query_interval(self.method, self.plan.shot, self.plan.level)

    def print(self, comparisons: list[dict[str, Any]], difference: float, power: float, encoder: str) -> None:
        read, made, origin = self.pilot, self.plan, self.pilot.origin
        on = "" if encoder == UNKNOWN else f", encoder {encoder}"
        say(
            f"{self.method} on {counted(read.tasks, 'task')} ({origin.spelling}) of {counted(read.way, 'way')}, "
            f"{counted(made.shot, 'shot')}, {counted(read.query, 'query', 'queries')}{on}: "
            f"{made.moments.m1:.1%} correct"
        )
        _print_plan(made, self.best_query_interval)
        title = f"tasks to tell {difference:g} points apart with power {power:.0%}"
        columns = ["methods", "queries", "tasks needed", "the data has", "its power"]
        print_table(title, columns, [[_cell(value) for value in row.values()] for row in comparisons])
        if origin.sampler not in (UNKNOWN, "random", "depletion"):
            say(f"The moments are those of {origin.sampler} tasks; the data's tasks are counted without replacement.")

    def _comparisons(self, difference: float, power: float) -> list[dict[str, Any]]:
        """How many tasks tell the method from each other one of the pilot, and from one that is run on other tasks."""
        from shotproof.planning.statistical_power import statistical_power, tasks_needed
        from shotproof.planning.task_plan import available_tasks

        rows = []
        pilot, made, method = self.pilot, self.plan, self.method
        others = [other for other in pilot.results.methods if other != method]
        for other in [*others, None]:
            for query in sorted({pilot.query, made.query or pilot.query}):
                paired = other is not None
                variance = pilot.difference_variance(method, other, query) if other else made.variance.at(query)
                if variance is None:  # the pilot cannot say for this number of queries
                    continue
                has = None if self.sizes is None else available_tasks(self.sizes, made.way, made.shot + query)
                needed, reached = None, None  # two methods that never differ: no number of tasks will do
                if variance > 0:
                    needed = tasks_needed(difference, variance, level=made.level, power=power, paired=paired)
                    if has is not None and has > 1:
                        reached = statistical_power(difference, variance, has, level=made.level, paired=paired)
                name = f"{method} - {other}" if other else f"{method} - one on other tasks"
                rows.append({"methods": name, "query": query, "needed": needed, "available": has, "power": reached})
        return rows


def _sizes(
    pilot: Pilot, catalog: Catalog | None, split: str | None, classes: int | None, items: int | None
) -> list[int] | None:
    """Return the items of each class of the data to plan for; None where nothing is known of it."""
    from shotproof.tasks.pool import ItemPool

    if catalog is not None and classes is None and items is None:
        sizes: list[int] = ItemPool.of(catalog.in_split(split or pilot.origin.design.split)).sizes.tolist()
        return sizes
    if classes is None or items is None:
        return None
    return [items] * classes


def _print_plan(made: Plan, interval: tuple[float, float] | None) -> None:
    """Print the moments, the best number of queries, and the half-widths as bars."""
    moments, variance, shot = made.moments, made.variance, made.shot
    say(f"  m1 {moments.m1:.4f}, m2 {moments.m2:.4f}, m3 {moments.m3:.4f}")
    say(f"  alpha {variance.alpha:.3g}, beta {variance.beta(shot):.3g}, gamma {variance.gamma(shot):.3g}")
    if math.isinf(made.best_query):
        say("  best number of queries: as large as the data allows (alpha is not above 0)")
    else:
        known = "" if interval is None else f" [{interval[0]:.1f}, {interval[1]:.1f}] by this pilot"
        say(f"  best number of queries: sqrt(beta / alpha) = {made.best_query:.1f}{known}")
    say()
    if not made.curve:
        say("Give the data (a catalog, or --classes and --items) to see its tasks and half-widths.")
        say(*made.reasons(), "")
        return
    say(f"{100 * made.level:g}% interval of the mean over tasks without replacement: half-width in points")
    say("queries  tasks")
    widest = max(point.half_width or 0.0 for point in made.curve)
    for point in made.curve:
        line = f"{point.query:7}  {point.tasks:5}  "
        if point.half_width is None:
            line += "needs at least 2 tasks"
        else:
            bar = "#" * round(BAR * point.half_width / widest)
            line += f"{point.half_width:5.2f} {bar}{' narrowest' if point.query == made.query else ''}"
        say(line)
    say(*made.reasons(), "")


def _cell(value: float | str | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0%}" if isinstance(value, float) else str(value)
