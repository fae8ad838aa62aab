"""`shotproof gate`: a card held against limits, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.arguments import AsJson
from shotproof.cli.console import say

FAILED = 1


def gate(
    card: Annotated[Path, typer.Argument(help="card.json, or the folder of a profile.")],
    limits: Annotated[Path | None, typer.Option(help="A TOML file with limits; flags go before it.")] = None,
    max_skill_lost: Annotated[
        float | None, typer.Option(help="Percent of the accuracy above chance that may be lost, e.g. 15.")
    ] = None,
    max_gap: Annotated[float | None, typer.Option(help="Points that may be lost against the reference.")] = None,
    min_worst_class: Annotated[
        float | None, typer.Option(help="Percent that the worst class of a task must reach on average.")
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            help="Look at this axis only, e.g. fewstab; repeat it for several. Default: skill lost and gap on axes of "
            "attributes, contexts and conditions; the worst class on all but searched tasks (hardest)."
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="An older card; on the same tasks it is compared task by task.")
    ] = None,
    max_drop: Annotated[
        float | None, typer.Option(help="Points of accuracy that may be lost against it. Default: 2.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail also where it cannot be told.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    github: Annotated[
        bool | None,
        typer.Option("--github/--no-github", help="Print annotations. Default: within GitHub's workflows."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fail (exit status 1) where a card is worse than a limit, conclusively under its interval.

    shotproof gate birds-profile --max-skill-lost 15

    Where the interval is too wide to tell, it says how many more tasks would, and passes, unless --strict.
    """
    import os

    from shotproof.cli.console import annotate, print_json
    from shotproof.comparison.card import Card
    from shotproof.comparison.gate import GateLimits, Limits
    from shotproof.comparison.gate import gate as hold
    from shotproof.comparison.gate_formats import gate_json, github_annotations, junit_xml
    from shotproof.core.storage.whole_files import write_text
    from shotproof.core.tables import check_output

    given = GateLimits() if limits is None else GateLimits.read(limits)
    given = given.with_flags(Limits(max_skill_lost, max_gap, min_worst_class, max_drop), axis or ())
    if junit is not None:
        check_output(junit)
    found = hold(Card.read(card), given, None if against is None else Card.read(against))
    if junit is not None:
        write_text(junit, junit_xml(found, strict))
    if as_json:
        print_json(gate_json(found, strict))
    else:
        for check in found.checks:
            say(f"{check.outcome:12} {check.told}")
        for note in found.notes:
            say(f"{'note':12} {note}")
    if github or (github is None and os.environ.get("GITHUB_ACTIONS") == "true"):
        for line in github_annotations(found, strict):
            annotate(line, err=as_json)
    if not found.passes(strict):
        raise typer.Exit(FAILED)
