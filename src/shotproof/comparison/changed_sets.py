"""Verdicts on task sets with one thing changed: which to report first, and which to report together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shotproof.comparison.verdicts import Verdict
from shotproof.results.applied_change import PASTED, SWAPS

AXIS: Final = "changes"
OF_NEW_ITEMS: Final = ("images", "classes")  # intervals that are valid for new items


@dataclass(frozen=True)
class Companions:
    """Verdicts that are reported in the statement on a swap of the background.

    pasted: what cutting and pasting itself costs: the reference of the swap, against its own reference
    alone: what is reached from the background alone
    for_new_items: another swap, whose interval is valid for new items while that of this one is not
    """

    pasted: Verdict | None = None
    alone: Verdict | None = None
    for_new_items: Verdict | None = None

    @property
    def all(self) -> list[Verdict]:
        """Return those that there are."""
        return [verdict for verdict in (self.pasted, self.alone, self.for_new_items) if verdict is not None]


def changes_last(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Put the verdicts on changes last in each design: the background first, then by the largest conclusive loss."""
    blocks = [verdict.block for verdict in verdicts]

    def order(verdict: Verdict) -> tuple[float, ...]:
        position = next(index for index, block in enumerate(blocks) if block is verdict.block)
        return (position, 1, *_importance(verdict)) if verdict.loss.axis == AXIS else (position, 0)

    return sorted(verdicts, key=order)


def companions(verdict: Verdict, verdicts: Sequence[Verdict]) -> Companions:
    """Find what is reported together with a swap of the background, among all verdicts.

    Nothing is for a swap that has a preferred one beside it, in whose statement the same would be said.
    """
    swaps = [
        other
        for other in verdicts
        if other.swaps_background and other.block is verdict.block and other.loss.reference == verdict.loss.reference
    ]
    if not verdict.swaps_background or _preferred(swaps) is not verdict or verdict.change is None:
        return Companions()
    changed = [other for other in verdicts if other.block is verdict.block and other.change is not None]
    pasted = next((other for other in changed if other.loss.label == verdict.loss.reference), None)
    alone = next(
        (
            other
            for other in changed
            if other.is_background_alone
            and other.change is not None
            and other.change.side == verdict.change.side
            and (pasted is None or other.loss.reference == pasted.loss.reference)
        ),
        None,
    )
    for_new = next((other for other in swaps if other.interval_name in OF_NEW_ITEMS), None)
    return Companions(pasted, alone, for_new if verdict.interval_name not in OF_NEW_ITEMS else None)


def without_companions(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Leave out the verdicts that are reported together with another one."""
    reported_beside = [companion for verdict in verdicts for companion in companions(verdict, verdicts).all]
    return [verdict for verdict in verdicts if all(verdict is not other for other in reported_beside)]


def _preferred(swaps: Sequence[Verdict]) -> Verdict | None:
    return min(swaps, key=_importance, default=None)


def _importance(verdict: Verdict) -> tuple[int, float]:
    name = verdict.change.name if verdict.change else ""
    if verdict.swaps_background:
        return SWAPS.index(name), -verdict.share_lost
    return len(SWAPS) + (name == PASTED or verdict.is_background_alone), -verdict.share_lost
