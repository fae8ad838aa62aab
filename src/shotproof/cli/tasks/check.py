"""`shotproof check`: does a task set keep its constraints, and can results and cards be true?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.console import say
from shotproof.core import limits

if TYPE_CHECKING:
    from shotproof.tasks.check import Violation
    from shotproof.tasks.taskset import TaskSet


def check(
    files: Annotated[
        list[Path],
        typer.Argument(help="Task sets; or results, cards and folders of runs, to be held against their task sets."),
    ],
    catalog: Annotated[Path | None, typer.Option(help="The catalog that the tasks were drawn from.")] = None,
    attributes: Annotated[Path | None, typer.Option(help="The attributes; needed where tasks plant some.")] = None,
    tasks: Annotated[
        list[Path] | None, typer.Option(help="Of results and cards: the task sets. Default: those of the folders.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Of results and cards: compute them anew on these features.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="FILE.model in place of features; needs --catalog.")] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1, max=limits.TASKS.most, help="On how many tasks of each set they are computed anew. Default: all."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=limits.SEED.most, help="Which tasks these are.")] = 0,
    trust: Annotated[bool, typer.Option("--trust", help="Import code that results and cards name.")] = False,
    most: Annotated[int, typer.Option(min=0, max=limits.MOST, help="How many violations to print.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all violations as JSON.")] = False,
) -> None:
    """Check every task against every constraint of its sampler's definition; exit status 1 if one is broken.

    Several task sets must also be matched: the same classes and support items, task by task.

    shotproof check tasks.parquet --catalog catalog.parquet --attributes attributes.parquet

    Of results and cards: whether counts are possible, all tasks there, and, with features, whether they come out again.

    shotproof check card.json --tasks tasks.parquet --features features.parquet --sample 50
    """
    from shotproof.cli.console import print_json
    from shotproof.core.errors import InputError
    from shotproof.core.files import is_folder
    from shotproof.pipeline.check import check as check_results
    from shotproof.pipeline.run_files import kind_of
    from shotproof.stats.export.numbers import counted

    if any(is_folder(file) or file.suffix == ".json" or kind_of(file) != "tasks" for file in files):
        found = check_results(
            files,
            tasks=tasks or (),
            features=features,
            model=model,
            catalog=catalog,
            sample=sample,
            seed=seed,
            trust=trust,
        )
        if as_json:
            print_json(asdict(found))
        else:
            for problem in found.problems[:most]:
                say(problem)
            if len(found.problems) > most:
                say(f"... and {len(found.problems) - most} more")
            for line in found.told:
                say(line)
            say(counted(len(found.problems), "problem") if found.problems else "everything holds")
        if found.problems:
            raise typer.Exit(1)
        return
    if catalog is None:
        raise InputError("expected the catalog that the tasks were drawn from (--catalog)")
    _check_tasks(files, catalog, attributes, most, as_json)


def _check_tasks(files: list[Path], catalog: Path, attributes: Path | None, most: int, as_json: bool) -> None:

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.console import print_json
    from shotproof.tasks.check import check_tasks
    from shotproof.tasks.context.check import check_matched
    from shotproof.tasks.taskset import TaskSet

    sets = {str(path): TaskSet.read(path) for path in files}
    words = None if attributes is None else Attributes.read(attributes)
    items = Catalog.read(catalog)
    found = {name: check_tasks(taskset, items, words) for name, taskset in sets.items()}
    unmatched = list(check_matched(sets))
    if as_json:
        told = [
            {"tasks": len(sets[name]), "violations": [asdict(violation) for violation in violations]}
            for name, violations in found.items()
        ]
        each = [{"file": name, **one} for name, one in zip(sets, told, strict=True)]
        print_json(told[0] if len(told) == 1 else {"files": each, "unmatched": unmatched})
    else:
        for name, violations in found.items():
            _tell(name, sets[name], violations, most)
        for sentence in unmatched:
            say(sentence)
        if len(sets) > 1 and not unmatched:
            say("matched: the same classes and support items, task by task")
    if unmatched or any(found.values()):
        raise typer.Exit(1)


def _tell(name: str, taskset: TaskSet, violations: list[Violation], most: int) -> None:
    for violation in violations[:most]:
        say(str(violation))
    if len(violations) > most:
        say(f"... and {len(violations) - most} more")
    verdict = f"{len(violations)} violations" if violations else "every constraint holds"
    say(f"{name}: {len(taskset)} tasks, {verdict}; digest {taskset.digest}")
