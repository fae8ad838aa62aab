"""What a comparison shows, decided by rules: who loses something, who can be told apart, and what nobody can tell.

For each task set that is measured against a reference, under the first interval that can be given:

1. A classifier whose accuracy on the reference is not conclusively above chance has nothing to lose, and takes no
   further part.
2. Of the others, a classifier loses something if the excess over the placebo, or without a placebo the gap, is
   conclusively above zero, after Holm's correction for all losses of the comparison (`conclusions`). Only with a
   placebo, and with words shuffled to tell what chance would lose, is that called leaning on attributes or contexts.
3. Classifiers are compared by the share of their skill that they lose, again after Holm's correction for all pairs of
   the comparison. Those that lose most are the one with the largest share and all that no pair tells from it, those
   that lose least likewise. They are named as most and least only if no classifier is in both groups and all that
   lose most do lose something; else one that loses something is named with all that lose conclusively less, and if
   there is none, that no two can be told apart.
4. If nothing is conclusive, the most that is lost, corrected likewise: if that is little, it is a finding. Otherwise
   how many more tasks, or how much more data, would settle it, if what is seen is a loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shotproof.comparison.comparison import Comparison
from shotproof.results.evaluated import Classifier, Metric
from shotproof.stats.block import NOTHING_TO_LOSE, Block, Loss
from shotproof.stats.intervals import Covers, Interval, Needed, needed

LITTLE = 5.0  # percent of the skill: that at most so much is lost is a finding
CEILING = 98.0  # an accuracy above it leaves so few errors that every interval is too narrow


@dataclass(frozen=True)
class Verdict:
    """What a comparison shows of one task set against its reference; classifiers from the largest share lost down.

    covers: the interval that it is by
    losing, gaining, unclear: those with skill, by whether they conclusively lose or gain, or neither
    at_chance: those without skill on the reference
    at_ceiling: those that are near 100% on the reference
    most, least: those that lose the largest and the smallest share of their skill, where the groups can be told apart
    more, than: else a classifier that loses more than these; None where no two can be told apart
    needed: what would tell, for the classifier nearest to a conclusion of those that seem to lose something; None if
        something is conclusive
    at_most: what each classifier loses at most, in percent of its skill, corrected for all losses of the comparison;
        NaN if there is no such bound
    """

    block: Block
    loss: Loss
    metric: Metric
    covers: Covers
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

    @property
    def focus(self) -> Classifier | None:
        """The classifier that readers are told about first: of those that lose, the most accurate on the tasks."""
        means = {row.classifier: row.means[self.metric] for row in self.block.group(self.loss.label).rows}
        return max(self.losing, key=lambda one: means[one], default=None)

    @property
    def share_lost(self) -> float:
        """The share of skill that the classifier in focus loses, in percent; 0 if there is none."""
        row = None if self.focus is None else self.loss.skill.row(self.focus)
        return 0.0 if row is None else row.intervals[self.metric][self.covers].mean

    @property
    def most_lost(self) -> float:
        """The most that any classifier loses, in percent of its skill; NaN if one has no bound."""
        return float(np.max(list(self.at_most.values()), initial=-math.inf))

    @property
    def leans(self) -> bool:
        """Return whether what is lost may be called leaning on what the tasks stress."""
        return self.loss.excess is not None and self.loss.is_shuffled


def verdicts(comparison: Comparison, metric: Metric | None = None) -> Iterator[Verdict]:
    """Give the verdict on each task set with a reference, by the first interval that some classifier can be given.

    Args:
        comparison: what was measured
        metric: what the verdicts are by; None is the comparison's
    """
    losses = [(block, loss) for block in comparison.blocks for loss in block.losses]
    corrected = 1 - (1 - comparison.level) / max(sum(len(loss.gap.rows) for _, loss in losses), 1)
    for block, loss in losses:
        yield _verdict(block, loss, comparison.covers, metric or comparison.metric, corrected)


def _verdict(block: Block, loss: Loss, covers: Sequence[Covers], metric: Metric, corrected: float) -> Verdict:
    given = [
        name for name in covers if any(not row.intervals[metric][name].refused for row in loss.lost.rows)
    ]  # without any, all is unclear
    chosen = given[0] if given else covers[0]
    concluded = loss.concluded[metric, chosen]
    shares = {row.classifier: row.intervals[metric][chosen] for row in loss.skill.rows}
    at_chance = [one for one, share in shares.items() if (share.refused or "").startswith(NOTHING_TO_LOSE)]
    known = sorted((one for one in shares if one not in at_chance), key=lambda one: -shares[one].mean)
    reference = {row.classifier: row.means["acc"] for row in block.group(loss.reference).rows}
    by_sign = {sign: tuple(one for one in known if concluded[one].conclusion == sign) for sign in ("+", "-", "0")}
    conclusive = bool(by_sign["+"] or by_sign["-"])
    return Verdict(
        block,
        loss,
        metric,
        chosen,
        by_sign["+"],
        by_sign["-"],
        by_sign["0"],
        tuple(at_chance),
        tuple(one for one in known if reference[one] >= CEILING),
        **_order(loss, metric, chosen, known, by_sign["+"]),
        needed=None if conclusive else _nearest([concluded[one].interval for one in known], loss.gap.tasks),
        at_most={one: shares[one].estimate.interval(level=corrected).high for one in known},
    )


def _order(
    loss: Loss, metric: Metric, covers: Covers, known: Sequence[Classifier], losing: Sequence[Classifier]
) -> dict[str, Any]:
    """Who loses most and least, by conclusive pairs of the share of skill; `known` from the largest share down."""
    signs = loss.skill.signs(metric, covers)
    below = {a: tuple(b for b in known if signs.get((a, b)) == "+") for a in known}
    ahead = [one for one in losing if below[one]]
    if not ahead:
        return {}
    most = tuple(one for one in known if one not in below[known[0]])
    least = tuple(one for one in known if known[-1] not in below[one])
    if not set(most) & set(least) and set(most) <= set(losing):
        return {"most": most, "least": least}
    more = max(ahead, key=lambda one: len(below[one]))
    return {"more": more, "than": below[more]}


def _nearest(losses: Sequence[Interval], tasks: int) -> Needed | None:
    """Return what takes least to settle a loss: few tasks before little data; None of what does not seem to be lost."""
    return min(
        (would for one in losses if one.mean > 0 and (would := needed(one, tasks)) is not None),
        key=lambda one: (one.tasks is None, one.tasks or 0, one.data is None, one.data or 0),
        default=None,
    )
