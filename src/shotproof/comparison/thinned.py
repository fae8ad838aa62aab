"""Thinning of a comparison to as many classifiers as a page can show, evenly spaced from best to worst."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shotproof.comparison.comparison import Comparison
from shotproof.results.evaluated import Classifier
from shotproof.stats.block import Block, Group, Loss

MOST_PAIRS = 6_000  # pairs of classifiers over all task sets, metrics and intervals: about 3 MB of a page


def thinned(comparison: Comparison, most_pairs: int = MOST_PAIRS) -> Comparison:
    """Keep fewer classifiers, evenly spaced from best to worst, if a comparison has too many pairs.

    Their numbers are unchanged: intervals, ranks and corrections still take all classifiers into account.

    Args:
        comparison: comparison of any number of classifiers
        most_pairs: largest number of pairs

    Returns:
        The comparison itself if it has no more pairs than that.
    """
    groups = [group for block in comparison.blocks for group in (*block.groups, *block.lost)]
    count = sum(len(pairs) for group in groups for pairs in group.pairs.values())
    if count <= most_pairs:
        return comparison
    ranked = _rank_classifiers(comparison)
    kept_count = max(2, int(len(ranked) * (most_pairs / count) ** 0.5))
    indices = np.linspace(0, len(ranked) - 1, kept_count).round().astype(int)
    classifiers = {ranked[index] for index in indices.tolist()}
    return replace(comparison, blocks=[_thin_block(block, classifiers) for block in comparison.blocks])


def _rank_classifiers(comparison: Comparison) -> list[Classifier]:
    """Sort all classifiers by their mean, best first."""
    means: dict[Classifier, list[float]] = {}
    for group in comparison.groups:
        for row in group.rows:
            means.setdefault(row.classifier, []).append(row.means[comparison.metric])
    return sorted(means, key=lambda classifier: (-float(np.mean(means[classifier])), classifier))


def _thin_block(block: Block, classifiers: set[Classifier]) -> Block:
    groups = [_thin_group(group, classifiers) for group in block.groups]
    return replace(block, groups=groups, losses=[_thin_loss(loss, classifiers) for loss in block.losses])


def _thin_loss(loss: Loss, classifiers: set[Classifier]) -> Loss:
    concluded = {
        key: {classifier: conclusion for classifier, conclusion in conclusions.items() if classifier in classifiers}
        for key, conclusions in loss.concluded.items()
    }
    return replace(
        loss,
        gap=_thin_group(loss.gap, classifiers),
        placebo=loss.placebo and _thin_group(loss.placebo, classifiers),
        excess=loss.excess and _thin_group(loss.excess, classifiers),
        skill=_thin_group(loss.skill, classifiers),
        concluded=concluded,
    )


def _thin_group(group: Group, classifiers: set[Classifier]) -> Group:
    return replace(
        group,
        rows=[row for row in group.rows if row.classifier in classifiers],
        pairs={key: [pair for pair in pairs if {pair.a, pair.b} <= classifiers] for key, pairs in group.pairs.items()},
        triples={
            metric: replace(triples, pairs=[triple for triple in triples.pairs if {triple.a, triple.b} <= classifiers])
            for metric, triples in group.triples.items()
        },
        values={classifier: values for classifier, values in group.values.items() if classifier in classifiers},
    )
