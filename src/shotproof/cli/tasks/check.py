"""`shotproof check`: does a task set keep its constraints?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shotproof.tasks.check import Violation
    from shotproof.tasks.taskset import TaskSet


def check(
    tasks: Annotated[list[Path], typer.Argument(help="tasks.parquet; several: sets with the same supports.")],
    catalog: Annotated[Path, typer.Option(help="The catalog that the tasks were drawn from.")],
    attributes: Annotated[Path | None, typer.Option(help="The attributes; needed where tasks plant some.")] = None,
    most: Annotated[int, typer.Option(help="How many violations to print.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all violations as JSON.")] = False,
) -> None:
    """Check every task against every constraint of its sampler's definition; exit status 1 if one is broken.

    Several task sets must also be matched: the same classes and support items, task by task.

    shotproof check tasks.parquet --catalog catalog.parquet --attributes attributes.parquet
    """
    from dataclasses import asdict

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.console import print_json
    from shotproof.tasks.check import check_tasks
    from shotproof.tasks.context.check import check_matched
    from shotproof.tasks.taskset import TaskSet

    sets = {str(path): TaskSet.read(path) for path in tasks}
    words = None if attributes is None else Attributes.read(attributes)
    items = Catalog.read(catalog)
    found = {name: check_tasks(taskset, items, words) for name, taskset in sets.items()}
    unmatched = list(check_matched(sets))
    if as_json:
        told = [
            {"tasks": len(sets[name]), "violations": [asdict(violation) for violation in violations]}
            for name, violations in found.items()
        ]
        files = [{"file": name, **one} for name, one in zip(sets, told, strict=True)]
        print_json(told[0] if len(told) == 1 else {"files": files, "unmatched": unmatched})
    else:
        for name, violations in found.items():
            _tell(name, sets[name], violations, most)
        for sentence in unmatched:
            typer.echo(sentence)
        if len(sets) > 1 and not unmatched:
            typer.echo("matched: the same classes and support items, task by task")
    if unmatched or any(found.values()):
        raise typer.Exit(1)


def _tell(name: str, taskset: TaskSet, violations: list[Violation], most: int) -> None:
    for violation in violations[:most]:
        typer.echo(str(violation))
    if len(violations) > most:
        typer.echo(f"... and {len(violations) - most} more")
    verdict = f"{len(violations)} violations" if violations else "every constraint holds"
    typer.echo(f"{name}: {len(taskset)} tasks, {verdict}; digest {taskset.digest}")
