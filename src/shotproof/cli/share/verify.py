"""`shotproof share verify`: are results, cards, bundles and task sets true?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.arguments import AsJson, Seed, Trusted, read_all, read_one, sort_files
from shotproof.cli.console import print_json, say
from shotproof.core import limits
from shotproof.core.errors import InputError
from shotproof.core.nouns import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shotproof.analysis.verification.checked import Checked

SHOWN = 20  # problems


def verify(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="Folders of runs and profiles, results, cards (.json), bundles (.zip) or task sets; beside them, in "
            "any order, what they were made from: task sets, features, a model, the catalog, attributes.",
        ),
    ],
    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.TASKS.most,
            help="Compute this many tasks of each set again, and no interval. Default: all.",
        ),
    ] = None,
    seed: Seed = 0,
    null: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.COUNT.most,
            help="Shuffle the words or contexts of a run's folder this often, and count the pages that would claim "
            "something.",
        ),
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
) -> None:
    """Check whether results, cards, bundles and task sets are true: exit status 0 only if all that was given is.

    Counts are computed again, a folder's card is made again from them, and tasks are held against their sampler.

    shotproof share verify birds-profile

    shotproof share verify card.json tasks.parquet features.parquet --sample 50

    Several task sets with their catalog alone must also be matched: the same classes and support items, task by task.

    shotproof share verify tasks.parquet catalog.parquet attributes.parquet

    Would it claim something of words that mean nothing? On the run's own features, with its words shuffled:

    shotproof share verify birds-results --null 20

    The exit status is 1 if something is wrong, and 2 if a file cannot be read or not all could be verified.
    """
    from shotproof.pipeline.verify import verify as verify_parts

    if null is not None:
        _check_null(files, null, seed, trust, as_json)
    elif all(_is_table(file) for file in files):
        _check_tasks(files, as_json)
    else:
        _tell_checked(verify_parts(files, sample=sample, seed=seed, trust=trust), as_json)


def _check_null(folders: Sequence[Path], pages: int, seed: int, trust: bool, as_json: bool) -> None:
    """Print how many pages of shuffled words claim something, and end with status 1 if these are too many."""
    from shotproof.analysis.null_check import RISK, check_null
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


def _is_table(file: Path) -> bool:
    """Return whether a file is a task set, or what task sets were drawn from."""
    from shotproof.pipeline.file_kinds import holds_files, kind_of

    if file.suffix != ".parquet" or holds_files(file):
        return False
    return kind_of(file) in ("tasks", "catalog", "attributes")


def _tell_checked(checked: Checked, as_json: bool) -> None:
    """Print what was found, and end with the status that it calls for."""
    wrong, verified, unchecked = (
        len(checked.problems),
        sum(map(len, checked.verified.values())),
        sum(map(len, checked.unchecked.values())),
    )
    if as_json:
        print_json(asdict(checked))
    else:
        _tell_problems([f"wrong        {problem}" for problem in checked.problems])
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
    """Return name one file, and count several."""
    return names[0] if len(names) == 1 else f"{len(names)} files, the first is {names[0]}"


def _check_tasks(files: list[Path], as_json: bool) -> None:
    """Hold task sets against their samplers' definitions and against each other; end with status 1 if one is wrong."""
    from shotproof.tasks.context.context_check import check_matched
    from shotproof.tasks.task_check import check_tasks

    given = sort_files(files, ("tasks", "catalog", "attributes"), several=("tasks",))
    if not given["tasks"]:
        raise InputError("nothing to verify: expected task sets, results, a card (.json), a bundle (.zip), or a folder")
    if not given["catalog"]:
        raise InputError("expected the catalog that the tasks were drawn from, catalog.parquet")
    sets = dict(zip(map(str, given["tasks"]), read_all(given["tasks"], "tasks"), strict=True))
    words, items = read_one(given["attributes"], "attributes"), read_one(given["catalog"], "catalog")
    violations = {name: check_tasks(tasks, items, words) for name, tasks in sets.items()}
    unmatched = list(check_matched(sets))
    if as_json:
        documents = [
            {"file": name, "tasks": len(sets[name]), "violations": [asdict(violation) for violation in of_set]}
            for name, of_set in violations.items()
        ]
        print_json(documents[0] if len(documents) == 1 else {"files": documents, "unmatched": unmatched})
    else:
        for name, of_set in violations.items():
            _tell_problems([str(violation) for violation in of_set])
            verdict = counted(len(of_set), "violation") if of_set else "every constraint holds"
            say(f"{name}: {counted(len(sets[name]), 'task')}, {verdict}; digest {sets[name].digest}")
        for sentence in unmatched:
            say(sentence)
        if len(sets) > 1 and not unmatched:
            say("matched: the same classes and support items, task by task")
    if unmatched or any(violations.values()):
        raise typer.Exit(1)


def _tell_problems(problems: Sequence[str]) -> None:
    for problem in problems[:SHOWN]:
        say(problem)
    if len(problems) > SHOWN:
        say(f"... and {len(problems) - SHOWN} more (--json)")
