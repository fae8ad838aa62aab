"""Conclusions on losses, corrected for multiple testing over everything that a page could claim about losses.

A page reports the losses of several classifiers on several task sets, and which classifier loses more than another. If
each were tested separately, a page with many of them would be wrong far more often than once in twenty. So all losses
of a comparison are one family for Holm's correction, all pairs of classifiers on all task sets are another, and the
costs of single attributes, for classifiers without a conclusive loss, are a third (`costs`). The risk of being wrong
(5% at a level of 95%) is divided between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.stats.block import Block, Loss
from shotproof.stats.intervals import Estimate, IntervalName
from shotproof.stats.pairs import conclude, corrected_together
from shotproof.stats.rows import with_ranks

# Shares of the risk; the remaining fifth is a reserve for errors of approximation.
RISK_OF_LOSSES, RISK_OF_PAIRS, RISK_OF_COSTS = 0.6, 0.1, 0.1


def conclude_losses(
    blocks: Sequence[Block], interval_names: Sequence[IntervalName], level: float, correct: bool
) -> list[Block]:
    """Conclude for each classifier and task set whether accuracy is lost, and for each pair which one loses more.

    Args:
        blocks: the blocks with the losses of each classifier
        interval_names: the intervals
        level: the confidence level of the intervals
        correct: whether to correct by Holm, over all blocks, within a metric and an interval

    Returns:
        The blocks with their conclusions.
    """
    losses = [loss for block in blocks for loss in block.losses]
    risk = 1 - level
    loss_level = 1 - risk * RISK_OF_LOSSES if correct else level
    keys = list(product(METRICS, interval_names))
    concluded = [dict(loss.concluded) for loss in losses]
    pairs = [dict(loss.skill.pairs) for loss in losses]
    for key in keys:
        rows = [(index, classifier) for index, loss in enumerate(losses) for classifier in loss.concluded[key]]
        # A loss without this interval is reported under another, so the correction counts it.
        estimates = [_estimate_or_first(losses[index], classifier, key, interval_names) for index, classifier in rows]
        for (index, classifier), sign in zip(rows, conclude(estimates, loss_level, correct), strict=True):
            undecided = concluded[index][key][classifier]
            if undecided.interval.variance is not None:
                concluded[index][key] |= {classifier: replace(undecided, conclusion=sign)}
        if correct and all(key in pairs_of_loss for pairs_of_loss in pairs):
            corrected = corrected_together([pairs_of_loss[key] for pairs_of_loss in pairs], 1 - risk * RISK_OF_PAIRS)
            for index, corrected_pairs in enumerate(corrected):
                pairs[index][key] = corrected_pairs
    concluded_losses = iter(
        replace(
            loss,
            concluded=concluded[index],
            skill=replace(
                loss.skill,
                pairs=pairs[index],
                rows=with_ranks(loss.skill.rows, pairs[index], "skill_lost"),
            ),
        )
        for index, loss in enumerate(losses)
    )
    return [replace(block, losses=[next(concluded_losses) for _ in block.losses]) for block in blocks]


def _estimate_or_first(
    loss: Loss, classifier: Classifier, key: tuple[Metric, IntervalName], interval_names: Sequence[IntervalName]
) -> Estimate:
    """Return the estimate under an interval, or else under the first interval that could be computed."""
    metric, preferred = key
    estimates = [loss.concluded[metric, name][classifier].interval.estimate for name in (preferred, *interval_names)]
    return next((estimate for estimate in estimates if estimate.spread is not None), estimates[0])
