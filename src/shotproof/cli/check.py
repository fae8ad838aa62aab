"""`shotproof check`: does a task set keep its constraints?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def check(
    tasks: Annotated[Path, typer.Argument(help="tasks.parquet")],
    catalog: Annotated[Path, typer.Option(help="The catalog that the tasks were drawn from.")],
    attributes: Annotated[Path | None, typer.Option(help="The attributes; needed where tasks plant some.")] = None,
    most: Annotated[int, typer.Option(help="How many violations to print.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all violations as JSON.")] = False,
) -> None:
    """Check every task against every constraint of its sampler's definition; exit status 1 if one is broken.

    shotproof check tasks.parquet --catalog catalog.parquet --attributes attributes.parquet
    """
    from dataclasses import asdict

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.console import print_json
    from shotproof.tasks.check import check_tasks
    from shotproof.tasks.taskset import TaskSet

    taskset = TaskSet.read(tasks)
    words = None if attributes is None else Attributes.read(attributes)
    violations = check_tasks(taskset, Catalog.read(catalog), words)
    if as_json:
        print_json({"tasks": len(taskset), "violations": [asdict(violation) for violation in violations]})
    else:
        for violation in violations[:most]:
            typer.echo(str(violation))
        if len(violations) > most:
            typer.echo(f"... and {len(violations) - most} more")
        verdict = f"{len(violations)} violations" if violations else "every constraint holds"
        typer.echo(f"{tasks}: {len(taskset)} tasks, {verdict}; digest {taskset.digest}")
    if violations:
        raise typer.Exit(1)
