"""`shotproof share verify`: verification of results, cards, bundles and task sets."""

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

MAX_PROBLEMS = 20


def verify(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="Run and profile folders, results, cards (.json), bundles (.zip) or task sets; and what they were "
            "computed from: task sets, features, a model, the catalog, attributes; in any order.",
        ),
    ],
    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.TASKS.most,
            help="Recompute this many tasks of each set, and no intervals. Default: all.",
        ),
    ] = None,
    seed: Seed = 0,
    null: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=limits.COUNT.most,
            help="Shuffle the attributes or contexts of a run this often, and count the pages that claim an effect.",
        ),
    ] = None,
    trust: Trusted = False,
    as_json: AsJson = False,
) -> None:
    """Verify results, cards, bundles and task sets by recomputing them; exit status 0 if everything is correct.

    Counts are recomputed, the card of a folder is rebuilt from them, and tasks are checked against their sampler.

    shotproof share verify birds-profile

    shotproof share verify card.json tasks.parquet features.parquet --sample 50

    Several task sets with only their catalog must also be matched: the same classes and support items, task by task.

    shotproof share verify tasks.parquet catalog.parquet attributes.parquet

    To count false claims, repeat a run on its own features with shuffled attributes:

    shotproof share verify birds-results --null 20

    The exit status is 1 if something is wrong, and 2 if a file is unreadable or could not be verified.
    """
    from shotproof.pipeline.verify import verify as verify_parts

    if null is not None:
        _check_null(files, null, seed, trust, as_json)
    elif all(_is_table(file) for file in files):
        _check_tasks(files, as_json)
    else:
        _print_checked(verify_parts(files, sample=sample, seed=seed, trust=trust), as_json)


def _check_null(folders: Sequence[Path], pages: int, seed: int, trust: bool, as_json: bool) -> None:
    """Print how many pages with shuffled words claim an effect, and exit with status 1 if these are too many."""
    from shotproof.analysis.null_check import RISK, check_null
    from shotproof.pipeline.read import read_inputs

    checked = check_null(read_inputs(folders, trust=trust), pages, seed=seed)
    if as_json:
        print_json({**asdict(checked), "is_sound": checked.is_sound})
    else:
        for claims in checked.claims:
            say(f"claimed      {'; '.join(claims)}")
        pages_checked = counted(checked.pages, "page")
        expected = f"about {RISK * checked.pages:g} expected by chance"
        say(f"{len(checked.claims)} of {pages_checked} with shuffled words claimed an effect; {expected}")
    if not checked.is_sound:
        raise typer.Exit(1)


def _is_table(file: Path) -> bool:
    """Return whether a file is a task set, a catalog or attributes."""
    from shotproof.pipeline.file_kinds import holds_files, kind_of

    if file.suffix != ".parquet" or holds_files(file):
        return False
    return kind_of(file) in ("tasks", "catalog", "attributes")


def _print_checked(checked: Checked, as_json: bool) -> None:
    """Print the outcome, and exit with the corresponding status."""
    wrong, verified, unchecked = (
        len(checked.problems),
        sum(map(len, checked.verified.values())),
        sum(map(len, checked.unchecked.values())),
    )
    if as_json:
        print_json(asdict(checked))
    else:
        _print_problems([f"wrong        {problem}" for problem in checked.problems])
        for check, names in checked.verified.items():
            say(f"verified     {_name_files(names)}: {check}")
        for reason, names in checked.unchecked.items():
            say(f"not checked  {_name_files(names)}: {reason}")
        say(f"{verified} verified, {wrong} wrong, {unchecked} not checked")
    if checked.conclusion == "wrong":
        raise typer.Exit(1)
    if checked.conclusion == "not verified":
        raise InputError(f"not verified: {'; '.join(checked.open) or 'nothing could be checked'}")


def _name_files(names: Sequence[str]) -> str:
    """Return the name of one file, or the number of several."""
    return names[0] if len(names) == 1 else f"{len(names)} files (first: {names[0]})"


def _check_tasks(files: list[Path], as_json: bool) -> None:
    """Check task sets against their sampler's definition and each other; exit with status 1 if one is wrong."""
    from shotproof.tasks.context.context_check import check_matched
    from shotproof.tasks.task_check import check_tasks

    sorted_files = sort_files(files, ("tasks", "catalog", "attributes"), several=("tasks",))
    if not sorted_files["tasks"]:
        raise InputError("nothing to verify: expected task sets, results, a card (.json), a bundle (.zip), or a folder")
    if not sorted_files["catalog"]:
        raise InputError("no catalog given: expected the catalog.parquet that the tasks were drawn from")
    sets = dict(zip(map(str, sorted_files["tasks"]), read_all(sorted_files["tasks"], "tasks"), strict=True))
    words, items = read_one(sorted_files["attributes"], "attributes"), read_one(sorted_files["catalog"], "catalog")
    violations = {name: check_tasks(tasks, items, words) for name, tasks in sets.items()}
    unmatched = list(check_matched(sets))
    if as_json:
        documents = [
            {"file": name, "tasks": len(sets[name]), "violations": [asdict(violation) for violation in set_violations]}
            for name, set_violations in violations.items()
        ]
        print_json(documents[0] if len(documents) == 1 else {"files": documents, "unmatched": unmatched})
    else:
        for name, set_violations in violations.items():
            _print_problems([str(violation) for violation in set_violations])
            verdict = counted(len(set_violations), "violation") if set_violations else "every constraint holds"
            say(f"{name}: {counted(len(sets[name]), 'task')}, {verdict}; digest {sets[name].digest}")
        for sentence in unmatched:
            say(sentence)
        if len(sets) > 1 and not unmatched:
            say("matched: the same classes and support items, task by task")
    if unmatched or any(violations.values()):
        raise typer.Exit(1)


def _print_problems(problems: Sequence[str]) -> None:
    """Print the first problems, and the number of others."""
    for problem in problems[:MAX_PROBLEMS]:
        say(problem)
    if len(problems) > MAX_PROBLEMS:
        say(f"... and {len(problems) - MAX_PROBLEMS} more (--json)")
