"""`shotproof cure`: what to do about a loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shotproof.cli.arguments import AsJson, Level, Seed, Trusted
from shotproof.cli.console import print_json, print_table, say
from shotproof.core import limits

if TYPE_CHECKING:
    from shotproof.cures.cure import Cure


def cure(
    folder: Annotated[Path, typer.Argument(help="Folder of a run or profile.")],
    method: Annotated[str | None, typer.Option(help="Method of the classifier to treat. Default: the first.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Its encoder. Default: the first.")] = None,
    shot: Annotated[
        int | None, typer.Option(min=1, max=limits.SHOT.most, help="Shots of the tasks. Default: the most.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Try only this remedy or family (features, supports, copies, heads, encoders, training); repeatable. "
            "Default: all but training, which takes long. See shotproof show remedies."
        ),
    ] = None,
    tasks: Annotated[
        int, typer.Option(min=2, max=limits.TASKS.most, help="Tasks of each set that remedies are chosen on.")
    ] = 200,
    budget: Annotated[
        str | None, typer.Option(help="Time after which no further remedy is tried, e.g. 90s, 5m or 1h. Default: all.")
    ] = None,
    level: Level = 0.95,
    seed: Seed = 0,
    trust: Trusted = False,
    as_json: AsJson = False,
) -> None:
    """Try remedies on a classifier, and say which ones conclusively help, what they cost, and how to apply them.

    shotproof cure birds-profile

    Remedies are fitted on some classes, chosen on others, and confirmed on those of the tasks. The folder gets
    cure.html, cure.json, and the folder cure with fitted transforms.
    """
    from shotproof.cli.console import printed_notes
    from shotproof.pipeline.study import cure as find_cure
    from shotproof.report.pages.cure_page import CURE_PAGE

    with printed_notes():
        outcome = find_cure(
            folder,
            method=method,
            encoder=encoder,
            shot=shot,
            remedies=only or (),
            tasks=tasks,
            budget=budget,
            level=level,
            seed=seed,
            trust=trust,
            log=lambda line: say(line, err=True),
        )
    if as_json:
        print_json(outcome.to_json())
        return
    print_cure(outcome)
    say(f"page: {folder / CURE_PAGE}")


def print_cure(cure: Cure) -> None:
    """Print what helps, the table of remedies, and how to apply the one to take."""
    from shotproof.comparison.numbers import bounds, percent, points
    from shotproof.cures.cure_sentences import apply_lines

    say(*cure.sentences(), "")
    rows = [
        [
            row.title,
            effect.axis,
            percent(effect.before.mean),
            percent(effect.after.mean),
            f"{points(effect.difference.mean)} {bounds(effect.difference)}",
            effect.outcome,
            f"{percent(row.accuracy_before.mean)} -> {percent(row.accuracy_after.mean)}",
        ]
        for row in cure.tried
        for effect in row.effects
    ]
    title = f"Skill lost, in percent, of {cure.method} on {cure.encoder}, {cure.design} tasks"
    print_table(title, ["remedy", "tasks", "before", "after", "difference", "outcome", "accuracy"], rows, left=2)
    best = cure.row(cure.recommended)
    if best is not None:
        say("", f"To apply {best.treatment}:", *(f"    {line}" for line in apply_lines(cure, best)))
    for row in cure.not_tried:
        say(f"not tried {row.remedy}: {row.reason}", err=True)
