"""Conclusions on what is lost, corrected for everything that a page could say of losses.

A page tells losses of several classifiers on several task sets, and who loses more than whom. If each were tested by
itself, a page of many would claim something wrong far more often than one in twenty. So all losses of a comparison are
one family for Holm's correction, all pairs of classifiers on all task sets another, and what single attributes cost
those that are not shown to lose a third (`costs`). The risk of being wrong (5% at a level of 95%) is divided between
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.stats.block import Block, Loss
from shotproof.stats.intervals import Covers, Estimate
from shotproof.stats.pairs import conclude, corrected_together
from shotproof.stats.rows import with_ranks

# How the risk is divided; a fifth is left for what approximations miss.
RISK_OF_LOSSES, RISK_OF_PAIRS, RISK_OF_COSTS = 0.6, 0.1, 0.1


def conclude_losses(blocks: Sequence[Block], covers: Sequence[Covers], level: float, correct: bool) -> list[Block]:
    """Decide of each classifier on each task set whether it loses, and of each pair who loses more.

    Args:
        blocks: with what each classifier loses
        covers: the intervals
        level: of the intervals
        correct: by Holm, over all blocks, within a metric and an interval

    Returns:
        The blocks with their conclusions.
    """
    losses = [loss for block in blocks for loss in block.losses]
    risk = 1 - level
    level_of_losses = 1 - risk * RISK_OF_LOSSES if correct else level
    keys = list(product(METRICS, covers))
    concluded = [dict(loss.concluded) for loss in losses]
    pairs = [dict(loss.skill.pairs) for loss in losses]
    for key in keys:
        rows = [(number, classifier) for number, loss in enumerate(losses) for classifier in loss.concluded[key]]
        # A loss without this interval is told by another: it counts among those that are corrected for.
        estimates = [_given(losses[number], classifier, key, covers) for number, classifier in rows]
        for (number, classifier), sign in zip(rows, conclude(estimates, level_of_losses, correct), strict=True):
            own = concluded[number][key][classifier]
            if own.interval.variance is not None:
                concluded[number][key] |= {classifier: replace(own, conclusion=sign)}
        if correct and all(key in one for one in pairs):
            corrected = corrected_together([one[key] for one in pairs], 1 - risk * RISK_OF_PAIRS)
            for number, of_loss in enumerate(corrected):
                pairs[number][key] = of_loss
    following = iter(
        replace(
            loss,
            concluded=concluded[number],
            skill=replace(
                loss.skill,
                pairs=pairs[number],
                rows=with_ranks(loss.skill.rows, pairs[number], "skill_lost"),
            ),
        )
        for number, loss in enumerate(losses)
    )
    return [replace(block, losses=[next(following) for _ in block.losses]) for block in blocks]


def _given(loss: Loss, classifier: Classifier, key: tuple[Metric, Covers], covers: Sequence[Covers]) -> Estimate:
    """Return the estimate under an interval, or else under the first that could be given."""
    metric, first = key
    estimates = [loss.concluded[metric, name][classifier].interval.estimate for name in (first, *covers)]
    return next((one for one in estimates if one.spread is not None), estimates[0])
