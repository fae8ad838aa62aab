"""Verdicts on task sets with one thing changed: which to report first, and which to report together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shotproof.comparison.verdicts import Verdict
from shotproof.results.change_labels import BACKGROUND_ALONE, PASTED, SWAPS, change_of
from shotproof.stats.block import Block, Loss

AXIS: Final = "changes"


def changes_last(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Put the verdicts on changes last in each design: the background first, then by the largest conclusive loss."""
    blocks = [verdict.block for verdict in verdicts]

    def order(verdict: Verdict) -> tuple[float, ...]:
        position = next(index for index, block in enumerate(blocks) if block is verdict.block)
        return (position, 1, *_importance(verdict)) if verdict.loss.axis == AXIS else (position, 0)

    return sorted(verdicts, key=order)


def companions(block: Block, loss: Loss) -> list[Loss]:
    """Return the losses that explain a swap of the background: what pasting costs, and what the background gives."""
    if loss.axis != AXIS or change_of(loss.label) not in SWAPS or " on " in loss.label:
        return []
    others = [other for other in block.losses if other.axis == AXIS and " on " not in other.label]
    changed = {change_of(other.label): other for other in others}
    return [changed[change] for change in (PASTED, BACKGROUND_ALONE) if change in changed]


def without_companions(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Leave out the verdicts that are reported together with another one."""
    reported_beside = [companion for verdict in verdicts for companion in companions(verdict.block, verdict.loss)]
    return [verdict for verdict in verdicts if all(verdict.loss is not loss for loss in reported_beside)]


def _importance(verdict: Verdict) -> tuple[int, float]:
    change = change_of(verdict.loss.label)
    if change in SWAPS:
        return SWAPS.index(change), -verdict.share_lost
    return len(SWAPS) + (change in (PASTED, BACKGROUND_ALONE)), -verdict.share_lost
