"""A comparison of many classifiers, thinned to as many as a page can show: of the best, the worst and those between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shotproof.comparison.comparison import Comparison
from shotproof.results.evaluated import Classifier
from shotproof.stats.block import Block, Group, Loss

MOST_PAIRS = 6_000  # of classifiers, over all task sets, metrics and intervals: some three megabytes of a page


def thinned(comparison: Comparison, most_pairs: int = MOST_PAIRS) -> Comparison:
    """The comparison itself; where it has more pairs, one of fewer classifiers, evenly spaced from best to worst.

    Their numbers are those of the whole comparison: intervals, ranks and corrections are by all classifiers.

    Args:
        comparison: of any number of classifiers
        most_pairs: how many pairs it may have
    """
    groups = [one for block in comparison.blocks for one in (*block.groups, *block.lost)]
    pairs = sum(len(of) for group in groups for of in group.pairs.values())
    if pairs <= most_pairs:
        return comparison
    ranked = _ranked(comparison)
    shown = max(2, int(len(ranked) * (most_pairs / pairs) ** 0.5))
    places = np.linspace(0, len(ranked) - 1, shown).round().astype(int)
    chosen = {ranked[place] for place in places.tolist()}
    return replace(comparison, blocks=[_only_block(block, chosen) for block in comparison.blocks])


def _ranked(comparison: Comparison) -> list[Classifier]:
    """All classifiers, those of the best mean first."""
    means: dict[Classifier, list[float]] = {}
    for group in comparison.groups:
        for row in group.rows:
            means.setdefault(row.classifier, []).append(row.means[comparison.metric])
    return sorted(means, key=lambda one: (-float(np.mean(means[one])), one))


def _only_block(block: Block, chosen: set[Classifier]) -> Block:
    groups = [_only(group, chosen) for group in block.groups]
    return replace(block, groups=groups, losses=[_only_loss(loss, chosen) for loss in block.losses])


def _only_loss(loss: Loss, chosen: set[Classifier]) -> Loss:
    concluded = {
        key: {classifier: one for classifier, one in of.items() if classifier in chosen}
        for key, of in loss.concluded.items()
    }
    return replace(
        loss,
        gap=_only(loss.gap, chosen),
        placebo=loss.placebo and _only(loss.placebo, chosen),
        excess=loss.excess and _only(loss.excess, chosen),
        skill=_only(loss.skill, chosen),
        concluded=concluded,
    )


def _only(group: Group, chosen: set[Classifier]) -> Group:
    return replace(
        group,
        rows=[row for row in group.rows if row.classifier in chosen],
        pairs={key: [pair for pair in pairs if {pair.a, pair.b} <= chosen] for key, pairs in group.pairs.items()},
        triples={
            metric: replace(triples, pairs=[one for one in triples.pairs if {one.a, one.b} <= chosen])
            for metric, triples in group.triples.items()
        },
        values={one: values for one, values in group.values.items() if one in chosen},
    )
