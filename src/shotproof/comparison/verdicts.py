"""Rules that decide what a comparison shows: who loses accuracy, who can be ranked, and what stays inconclusive.

For each task set that is measured against a reference, under the first interval that can be given:

1. A classifier whose accuracy on the reference is not conclusively above chance has no skill to lose, and is left out
   of the other rules.
2. Any other classifier loses accuracy if the excess over the placebo, or without a placebo the gap, is conclusively
   above zero, after Holm's correction for all losses of the comparison (`conclusions`). Such a loss is called reliance
   on attributes or contexts only if there is a placebo, and if these were shuffled to estimate what chance would lose;
   and reliance on the background only if nothing but the background differs (`AppliedChange.swaps_background`).
3. Classifiers are compared by the share of their skill that they lose, again after Holm's correction for all pairs of
   the comparison. Those that lose most are the one with the largest share and all that no pair distinguishes from it;
   likewise those that lose least. They are reported as most and least only if no classifier is in both groups and all
   that lose most do lose accuracy. Otherwise one that loses accuracy is reported with all that lose conclusively less;
   if there is none, the classifiers are not ranked.
4. If nothing is conclusive, the upper bound of the loss, corrected likewise, is reported: if it is small, that is a
   finding. Otherwise the report states how many more tasks, or how much more data, would settle the question, provided
   that the estimate is a loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shotproof.comparison.comparison import Comparison
from shotproof.results.applied_change import AppliedChange
from shotproof.results.evaluated import Classifier, Metric
from shotproof.stats.block import NOTHING_TO_LOSE, Block, Loss
from shotproof.stats.intervals import Interval, IntervalName, Needed, needed

LITTLE = 5.0  # percent of the skill; a loss of at most this much is a finding
CEILING = 98.0  # a higher accuracy leaves so few errors that an interval is too narrow, if there is one


@dataclass(frozen=True)
class Verdict:
    """Findings on one task set against its reference; classifiers are ordered from the largest share lost down.

    interval_name: name of the interval that the verdict is based on
    change, reference_change: what is changed in the items of the tasks and of the reference; None if nothing is
    losing, gaining, unclear: classifiers with skill, by whether they conclusively lose, gain, or neither
    at_chance: classifiers without skill on the reference
    at_ceiling: classifiers near 100% on the reference
    most, least: classifiers that lose the largest and the smallest share of their skill, if the two groups are distinct
    more, than: otherwise, a classifier that loses more than these; None if no two can be distinguished
    needed: tasks or data that would settle the question, for the classifier nearest to a conclusion among those that
        seem to lose accuracy; None if something is conclusive
    at_most: upper bound of what each classifier loses, in percent of its skill, corrected for all losses of the
        comparison; NaN if there is no such bound
    """

    block: Block
    loss: Loss
    metric: Metric
    interval_name: IntervalName
    losing: tuple[Classifier, ...] = ()
    gaining: tuple[Classifier, ...] = ()
    unclear: tuple[Classifier, ...] = ()
    at_chance: tuple[Classifier, ...] = ()
    at_ceiling: tuple[Classifier, ...] = ()
    most: tuple[Classifier, ...] = ()
    least: tuple[Classifier, ...] = ()
    more: Classifier | None = None
    than: tuple[Classifier, ...] = ()
    needed: Needed | None = None
    at_most: Mapping[Classifier, float] = field(default_factory=dict)
    change: AppliedChange | None = None
    reference_change: AppliedChange | None = None

    @property
    def focus(self) -> Classifier | None:
        """Return the classifier to report first: of those that lose accuracy, the most accurate on the tasks."""
        means = {row.classifier: row.means[self.metric] for row in self.block.group(self.loss.label).rows}
        return max(self.losing, key=lambda classifier: means[classifier], default=None)

    @property
    def share_lost(self) -> float:
        """Return the share of skill that the classifier in focus loses, in percent; 0 if there is none."""
        row = None if self.focus is None else self.loss.skill.row(self.focus)
        return 0.0 if row is None else row.intervals[self.metric][self.interval_name].mean

    @property
    def refused(self) -> str | None:
        """Return why no loss has an interval; None if one has."""
        reasons = [row.intervals[self.metric][self.interval_name].refused for row in self.loss.lost.rows]
        return None if None in reasons else next(iter(reasons), None)

    @property
    def most_lost(self) -> float:
        """Return the largest upper bound of any classifier, in percent of its skill; NaN if one has no bound."""
        return float(np.max(list(self.at_most.values()), initial=-math.inf))

    @property
    def shows_reliance(self) -> bool:
        """Return whether a loss may be called reliance on what the tasks stress."""
        return self.swaps_background or (self.loss.excess is not None and self.loss.is_shuffled)

    @property
    def swaps_background(self) -> bool:
        """Return whether only the background differs from the reference."""
        return self.change is not None and self.change.swaps_background(self.reference_change)

    @property
    def is_background_alone(self) -> bool:
        """Return whether items are shown without their foreground, so that no accuracy is due."""
        return self.change is not None and self.change.is_background_alone


def verdicts(comparison: Comparison, metric: Metric | None = None) -> Iterator[Verdict]:
    """Judge each task set that has a reference, by the first interval that is available for any classifier.

    Args:
        comparison: measured results
        metric: metric to judge by; None for the comparison's own
    """
    losses = [(block, loss) for block in comparison.blocks for loss in block.losses]
    corrected = 1 - (1 - comparison.level) / max(sum(len(loss.gap.rows) for _, loss in losses), 1)
    for block, loss in losses:
        verdict = _verdict(block, loss, comparison.interval_names, metric or comparison.metric, corrected)
        change, of_reference = (comparison.changes.get((block.design, side)) for side in (loss.label, loss.reference))
        yield replace(verdict, change=change, reference_change=of_reference)


def _verdict(
    block: Block, loss: Loss, interval_names: Sequence[IntervalName], metric: Metric, corrected: float
) -> Verdict:
    available = [
        name for name in interval_names if any(not row.intervals[metric][name].refused for row in loss.lost.rows)
    ]  # if there is none, everything is unclear
    interval = available[0] if available else interval_names[0]
    concluded = loss.concluded[metric, interval]
    shares = {row.classifier: row.intervals[metric][interval] for row in loss.skill.rows}
    at_chance = [
        classifier for classifier, share in shares.items() if (share.refused or "").startswith(NOTHING_TO_LOSE)
    ]
    with_skill = sorted(
        (classifier for classifier in shares if classifier not in at_chance),
        key=lambda classifier: -shares[classifier].mean,
    )
    reference = {row.classifier: row.means["acc"] for row in block.group(loss.reference).rows}
    by_sign = {
        sign: tuple(classifier for classifier in with_skill if concluded[classifier].conclusion == sign)
        for sign in ("+", "-", "0")
    }
    conclusive = bool(by_sign["+"] or by_sign["-"])
    return Verdict(
        block,
        loss,
        metric,
        interval,
        by_sign["+"],
        by_sign["-"],
        by_sign["0"],
        tuple(at_chance),
        tuple(classifier for classifier in with_skill if reference[classifier] >= CEILING),
        **_rank_losses(loss, metric, interval, with_skill, by_sign["+"]),
        needed=None
        if conclusive
        else _least_needed([concluded[classifier].interval for classifier in with_skill], loss.gap.tasks),
        at_most={classifier: shares[classifier].estimate.interval(level=corrected).high for classifier in with_skill},
    )


def _rank_losses(
    loss: Loss, metric: Metric, interval_name: IntervalName, ordered: Sequence[Classifier], losing: Sequence[Classifier]
) -> dict[str, Any]:
    """Find who loses most and least, by conclusive pairs of the share of skill.

    Args:
        loss: the loss to rank by
        metric, interval_name: metric and interval of the pairs
        ordered: classifiers with skill, from the largest share lost down
        losing: classifiers that conclusively lose accuracy

    Returns:
        The fields `most` and `least`, or `more` and `than`, of the verdict; empty if no pair is conclusive.
    """
    signs = loss.skill.signs(metric, interval_name)
    below = {a: tuple(b for b in ordered if signs.get((a, b)) == "+") for a in ordered}
    ahead = [classifier for classifier in losing if below[classifier]]
    if not ahead:
        return {}
    most = tuple(classifier for classifier in ordered if classifier not in below[ordered[0]])
    least = tuple(classifier for classifier in ordered if ordered[-1] not in below[classifier])
    if not set(most) & set(least) and set(most) <= set(losing):
        return {"most": most, "least": least}
    more = max(ahead, key=lambda classifier: len(below[classifier]))
    return {"more": more, "than": below[more]}


def _least_needed(losses: Sequence[Interval], tasks: int) -> Needed | None:
    """Return the least effort that would settle a loss: few tasks before little data; None if none seems to be lost."""
    return min(
        (required for loss in losses if loss.mean > 0 and (required := needed(loss, tasks)) is not None),
        key=lambda required: (required.tasks is None, required.tasks or 0, required.data is None, required.data or 0),
        default=None,
    )
