"""Small cures with numbers of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shotproof.cures.cure import Cure, NotTried, SupportPoint, ToCollect, TriedRemedy
from shotproof.cures.effects import AS_IS, Effect, Outcome
from shotproof.stats.intervals import Estimate, Interval
from tests.drawn_cards import LEVEL, card_number

PARTS = {"fit": 6, "choose": 7, "confirm": 8}


def chance_number() -> Interval:
    """The share of skill that a classifier at chance loses, which is no number."""
    return Estimate(float("nan"), None, "the classifier is at chance").interval("images", LEVEL)


def make_effect(
    before: float, after: float, outcome: Outcome = "cannot tell", axis: str = "fewstab", more_tasks: int | None = None
) -> Effect:
    """A change of the skill that is lost, in percent, with standard errors of a point."""
    lost, lost_after, difference = (card_number(value, 1.0) for value in (before, after, after - before))
    return Effect(axis, "random", lost, lost_after, difference, outcome, more_tasks)


def make_row(
    remedy: str, *effects: Effect, accuracy: tuple[float, float] = (80.0, 81.0), **changes: Any
) -> TriedRemedy:
    """A remedy with its effects."""
    before, after = accuracy
    row = TriedRemedy(
        remedy=remedy,
        family="features",
        treatment=f"l2 > {remedy}",
        baseline=AS_IS,
        settings=2,
        plain="random",
        accuracy_before=card_number(before, 1.0),
        accuracy_after=card_number(after, 1.0),
        accuracy_difference=card_number(after - before, 1.0),
        effects=effects,
        score=50.0,
        apply=('--transform "l2"', f"--transform \"fitted(file='cure/{remedy}.parquet')\""),
    )
    return replace(row, **changes)


def make_cure(rows: Sequence[TriedRemedy] = (), **changes: Any) -> Cure:
    """A cure that recommends the first remedy that helps."""
    rows = rows or [make_row("wccn", make_effect(40.0, 15.0, "helps"))]
    helping = (row.remedy for row in rows if row.helps)
    cure = Cure(
        encoder="lite0",
        method="ncc",
        data_set="birds",
        design="5-way 5-shot",
        medium="image",
        parts=PARTS,
        tasks=600,
        level=LEVEL,
        tried=tuple(rows),
        recommended=next(helping, None),
    )
    return replace(cure, **changes)


def full_cure() -> Cure:
    """A cure with all that one can have."""
    return make_cure(
        [
            make_row("wccn", make_effect(40.0, 15.0, "helps"), make_effect(9.0, 8.5, axis="ood", more_tasks=1234)),
            make_row("preprocess", make_effect(40.0, 55.0, "hurts"), accuracy_conclusion="-"),
            make_row("copies", replace(make_effect(40.0, 39.0), after=chance_number()), score=None, family="copies"),
        ],
        not_tried=(NotTried("center-contexts", "the data has no contexts"),),
        supports=(
            SupportPoint("ood", 5, None, card_number(30.0, 1.0)),
            SupportPoint("ood", 5, 1, card_number(40.0, 1.0)),
            SupportPoint("ood", 5, 3, card_number(15.0, 1.0)),
        ),
        collect=(ToCollect("duck", "water", 30, 4, 12.5, 20), ToCollect("gull", "sand", 25, 5, 8.0, 11)),
        notes=("ood tasks did not take part in choosing: too few",),
    )
