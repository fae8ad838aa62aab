"""How much the means vary with the seed that tasks were drawn by."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.comparison.comparison import Comparison
from shotproof.report.pages.matrix import group_name
from shotproof.results.evaluated import METRICS, Metric


@dataclass(frozen=True)
class SeedsRow:
    """One classifier on the replicates of a task set, or its gap: the mean over all, and the spread over seeds."""

    set_name: str
    classifier: str
    seeds: int
    means: dict[Metric, float]
    spreads: dict[Metric, float]


def seeds_rows(comparison: Comparison) -> list[SeedsRow]:
    """One row per task set or gap, and classifier, where there is more than one seed."""
    rows = []
    for block in comparison.blocks:
        for group in [*block.measured, *block.gaps]:
            name = group_name(comparison, block.design, group)
            for row in group.rows:
                spreads = {metric: spread for metric in METRICS if (spread := row.spread(metric)) is not None}
                if spreads:
                    classifier = comparison.classifier_name(row.classifier)
                    rows.append(SeedsRow(name, classifier, len(row.seeds[METRICS[0]]), row.means, spreads))
    return rows
