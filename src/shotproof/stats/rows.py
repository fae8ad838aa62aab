"""Rows of tables from estimates: pairs with their conclusions, classifiers with intervals and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.stats.block import ClassifierRow, Differences, Estimates, Quantity
from shotproof.stats.intervals import IntervalName
from shotproof.stats.pairs import Pair, compare_pairs
from shotproof.stats.ranks import RankRange, rank_ranges


def compared_pairs(
    estimates: Estimates, differences: Differences, level: float, correct: bool
) -> dict[tuple[Metric, IntervalName], list[Pair]]:
    """Compare all pairs of classifiers, by metric and interval, corrected within each, if differences exist."""
    return {
        key: compare_pairs(differences[key], key[1], level, correct, by_classifier)
        for key, by_classifier in estimates.items()
        if key in differences
    }


def classifier_rows(
    estimates: Estimates,
    pairs: Mapping[tuple[Metric, IntervalName], Sequence[Pair]],
    quantity: Quantity,
    level: float,
    seeds: Mapping[Classifier, Mapping[Metric, Mapping[int | None, float]]] | None = None,
) -> list[ClassifierRow]:
    """Build one row per classifier, in the order of the estimates, with ranks for accuracies and for skill."""
    interval_names = list(dict.fromkeys(name for _, name in estimates))
    rows = []
    for classifier in next(iter(estimates.values()), {}):
        intervals = {
            m: {
                c: estimates[m, c][classifier].interval(c, level, estimates.get((m, "sampler"), {}).get(classifier))
                for c in interval_names
            }
            for m in METRICS
        }
        # If there is no number under an interval, use that under another.
        means = {
            m: next((interval.mean for interval in by_name.values() if interval.has_mean), math.nan)
            for m, by_name in intervals.items()
        }
        ranks: dict[Metric, dict[IntervalName, RankRange | None]] = {m: dict.fromkeys(interval_names) for m in METRICS}
        rows.append(
            ClassifierRow(
                classifier, means, intervals, ranks, {m: dict(seeds[classifier][m]) if seeds else {} for m in METRICS}
            )
        )
    return with_ranks(rows, pairs, quantity)


def with_ranks(
    rows: Sequence[ClassifierRow], pairs: Mapping[tuple[Metric, IntervalName], Sequence[Pair]], quantity: Quantity
) -> list[ClassifierRow]:
    """Rank accuracies and skill, by pairs; for lost skill, the least is best."""
    if quantity not in ("accuracy", "skill_lost") or not pairs:
        return list(rows)
    ranked = {
        (m, c): _ranks({row.classifier: row.intervals[m][c].mean for row in rows}, key_pairs, quantity == "skill_lost")
        for (m, c), key_pairs in pairs.items()
    }
    return [
        replace(
            row, ranks={m: {c: ranked[m, c][row.classifier] for c in by_name} for m, by_name in row.intervals.items()}
        )
        for row in rows
    ]


def _ranks(
    means: Mapping[Classifier, float], pairs: Sequence[Pair], lowest_first: bool
) -> Mapping[Classifier, RankRange | None]:
    """Rank the classifiers; None for those without a mean, and for all if no pair has an interval."""
    if pairs and all(pair.interval.refused for pair in pairs):
        return dict.fromkeys(means)
    ranked_means = {
        classifier: -mean if lowest_first else mean for classifier, mean in means.items() if not math.isnan(mean)
    }
    ranked_pairs = [pair for pair in pairs if pair.a in ranked_means and pair.b in ranked_means]
    ranges = rank_ranges(ranked_means, [pair.negated() for pair in ranked_pairs] if lowest_first else ranked_pairs)
    return {classifier: ranges.get(classifier) for classifier in means}
