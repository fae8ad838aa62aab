"""`shotproof check`: are results, cards, bundles and task sets true?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.console import say
from shotproof.core import limits
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shotproof.analysis.verification.checked import Checked
    from shotproof.tasks.task_check import Violation
    from shotproof.tasks.taskset import TaskSet


def check(
    files: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs and profiles, results, cards (.json), bundles (.zip) or task sets."),
    ],
    catalog: Annotated[Path | None, typer.Option(help="The catalog that the tasks were drawn from.")] = None,
    attributes: Annotated[Path | None, typer.Option(help="The attributes; needed where tasks plant some.")] = None,
    tasks: Annotated[
        list[Path] | None, typer.Option(help="Of results and cards: the task sets, beside those of the folders.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Of results and cards: the features, beside those of the folders.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="FILE.model in place of features; needs --catalog.")] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.TASKS.most,
            help="Compute this many tasks of each set again, and no interval. Default: all.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=limits.SEED.most, help="Which tasks these are.")] = 0,
    null: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.COUNT.most,
            help="Shuffle the words or contexts of a run's folder this often, and count the pages that would claim "
            "something.",
        ),
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Import code that results and cards name.")] = False,
    most: Annotated[int, typer.Option(min=0, max=limits.MOST, help="How many problems to print.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print all that was found as JSON.")] = False,
) -> None:
    """Check whether results, cards, bundles and task sets are true: exit status 0 only if all that was given is.

    Counts are computed again, a folder's card is made again from them, and tasks are held against their sampler.

    shotproof check birds-profile

    shotproof check card.json --tasks tasks.parquet --features features.parquet --sample 50

    Several task sets alone must also be matched: the same classes and support items, task by task.

    shotproof check tasks.parquet --catalog catalog.parquet --attributes attributes.parquet

    Would it claim something of words that mean nothing? On the run's own features, with its words shuffled:

    shotproof check birds-results --null 20

    The exit status is 1 if something is wrong, and 2 if a file cannot be read or not all could be verified.
    """
    from shotproof.core.errors import InputError
    from shotproof.pipeline.verify import verify

    if null is not None:
        _check_null(files, null, seed, trust, as_json)
        return
    if not all(_is_task_set(file) for file in files):
        beside = [path for path in (*(tasks or ()), features, model, catalog, attributes) if path is not None]
        checked = verify([*files, *beside], sample=sample, seed=seed, trust=trust)
        _tell_checked(checked, most, as_json)
        return
    if catalog is None:
        raise InputError("expected the catalog that the tasks were drawn from (--catalog)")
    _check_tasks(files, catalog, attributes, most, as_json)


def _check_null(folders: Sequence[Path], pages: int, seed: int, trust: bool, as_json: bool) -> None:
    """Print how many pages of shuffled words claim something, and end with status 1 if these are too many."""
    from shotproof.analysis.null_check import RISK, check_null
    from shotproof.cli.console import print_json
    from shotproof.pipeline.read import read_inputs

    checked = check_null(read_inputs(folders, trust=trust), pages, seed=seed)
    if as_json:
        print_json({**asdict(checked), "is_sound": checked.is_sound})
    else:
        for claims in checked.claims:
            say(f"claimed      {'; '.join(claims)}")
        made = counted(checked.pages, "page")
        expected = f"about {RISK * checked.pages:g} may by chance"
        say(f"{len(checked.claims)} of {made} with shuffled words claimed something; {expected}")
    if not checked.is_sound:
        raise typer.Exit(1)


def _is_task_set(file: Path) -> bool:
    from shotproof.core.storage.files import is_folder
    from shotproof.core.storage.parts import in_parts
    from shotproof.pipeline.read import kind_of

    if file.suffix != ".parquet" or (is_folder(file) and not in_parts(file)):
        return False
    return kind_of(file) == "tasks"


def _tell_checked(checked: Checked, most: int, as_json: bool) -> None:
    """Print what was found, and end with the status that it calls for."""
    from shotproof.cli.console import print_json
    from shotproof.core.errors import InputError

    wrong, verified, unchecked = (
        len(checked.problems),
        sum(map(len, checked.verified.values())),
        sum(map(len, checked.unchecked.values())),
    )
    if as_json:
        print_json(asdict(checked))
    else:
        for problem in checked.problems[:most]:
            say(f"wrong        {problem}")
        if wrong > most:
            say(f"... and {wrong - most} more")
        for what, names in checked.verified.items():
            say(f"verified     {_files(names)}: {what}")
        for why, names in checked.unchecked.items():
            say(f"not checked  {_files(names)}: {why}")
        say(f"{verified} verified, {wrong} wrong, {unchecked} not checked")
    if checked.conclusion == "wrong":
        raise typer.Exit(1)
    if checked.conclusion == "not verified":
        raise InputError(f"not verified: {'; '.join(checked.open) or 'nothing could be checked'}")


def _files(names: Sequence[str]) -> str:
    """Name one file, and count several."""
    return names[0] if len(names) == 1 else f"{len(names)} files, the first is {names[0]}"


def _check_tasks(files: list[Path], catalog: Path, attributes: Path | None, most: int, as_json: bool) -> None:

    from shotproof.attributes.attributes import Attributes
    from shotproof.catalog.catalog import Catalog
    from shotproof.cli.console import print_json
    from shotproof.tasks.context.context_check import check_matched
    from shotproof.tasks.task_check import check_tasks
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
    verdict = counted(len(violations), "violation") if violations else "every constraint holds"
    say(f"{name}: {counted(len(taskset), 'task')}, {verdict}; digest {taskset.digest}")
