"""`shotproof gate`: limits for a card, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shotproof.cli.arguments import AsJson
from shotproof.cli.console import say

FAILED = 1


def gate(
    card: Annotated[Path, typer.Argument(help="card.json or a profile folder.")],
    limits: Annotated[Path | None, typer.Option(help="TOML file with limits; flags override it.")] = None,
    max_skill_lost: Annotated[
        float | None, typer.Option(help="Largest skill lost (share of the accuracy above chance), in percent, e.g. 15.")
    ] = None,
    max_gap: Annotated[float | None, typer.Option(help="Largest gap from the reference, in points.")] = None,
    min_worst_class: Annotated[
        float | None, typer.Option(help="Smallest mean accuracy of the worst class of a task, in percent.")
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            help="Check only this axis, e.g. fewstab; repeatable. Default: skill lost and gap on attributes, contexts, "
            "conditions and swapped backgrounds; the worst class on all axes except searched tasks (hardest) and "
            "only-background."
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Older card to compare with; task by task if the tasks are the same.")
    ] = None,
    max_drop: Annotated[
        float | None, typer.Option(help="Largest loss of accuracy against the older card, in points. Default: 2.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also fail if a check is not conclusive.")] = False,
    junit: Annotated[Path | None, typer.Option(help="JUnit XML file to write.")] = None,
    github: Annotated[
        bool | None,
        typer.Option("--github/--no-github", help="Print annotations for GitHub. Default: in GitHub workflows."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fail with exit status 1 if a card conclusively violates a limit.

    shotproof gate birds-profile --max-skill-lost 15

    A limit inside the interval is not conclusive: the check passes, unless --strict is given, and says how many more
    tasks would settle it.
    """
    import os

    from shotproof.cli.console import annotate, print_json
    from shotproof.comparison.card import Card
    from shotproof.comparison.gate import GateLimits, Limits
    from shotproof.comparison.gate import gate as check_card
    from shotproof.comparison.gate_formats import gate_json, github_annotations, junit_xml
    from shotproof.core.storage.whole_files import write_text
    from shotproof.core.tables import check_output

    gate_limits = GateLimits() if limits is None else GateLimits.read(limits)
    gate_limits = gate_limits.with_flags(Limits(max_skill_lost, max_gap, min_worst_class, max_drop), axis or ())
    if junit is not None:
        check_output(junit)
    outcome = check_card(Card.read(card), gate_limits, None if against is None else Card.read(against))
    if junit is not None:
        write_text(junit, junit_xml(outcome, strict))
    if as_json:
        print_json(gate_json(outcome, strict))
    else:
        for check in outcome.checks:
            say(f"{check.outcome:12} {check.sentence}")
        for note in outcome.notes:
            say(f"{'note':12} {note}")
    if github or (github is None and os.environ.get("GITHUB_ACTIONS") == "true"):
        for line in github_annotations(outcome, strict):
            annotate(line, err=as_json)
    if not outcome.passes(strict):
        raise typer.Exit(FAILED)
