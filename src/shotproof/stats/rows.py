"""From estimates to what tables show: pairs with their conclusions, rows with intervals and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.stats.block import ClassifierRow, Differences, Estimates, Quantity
from shotproof.stats.intervals import Covers
from shotproof.stats.pairs import Pair, compare_pairs
from shotproof.stats.ranks import RankRange, rank_ranges


def compared_pairs(
    estimates: Estimates, differences: Differences, level: float, correct: bool
) -> dict[tuple[Metric, Covers], list[Pair]]:
    """All pairs of classifiers, by metric and interval; corrected within each. None where there are no differences."""
    return {
        key: compare_pairs(differences[key], key[1], level, correct, of_key)
        for key, of_key in estimates.items()
        if key in differences
    }


def classifier_rows(
    estimates: Estimates,
    pairs: Mapping[tuple[Metric, Covers], Sequence[Pair]],
    quantity: Quantity,
    level: float,
    seeds: Mapping[Classifier, Mapping[Metric, Mapping[int | None, float]]] | None = None,
) -> list[ClassifierRow]:
    """One row per classifier, in the order of the estimates; ranks for accuracies and for skill."""
    covers = list(dict.fromkeys(name for _, name in estimates))
    rows = []
    for one in next(iter(estimates.values()), {}):
        intervals = {
            m: {c: estimates[m, c][one].interval(c, level, estimates.get((m, "sampler"), {}).get(one)) for c in covers}
            for m in METRICS
        }
        # Of what has no number under some interval, that of another.
        means = {m: next((each.mean for each in of.values() if each.has_mean), math.nan) for m, of in intervals.items()}
        ranks: dict[Metric, dict[Covers, RankRange | None]] = {m: dict.fromkeys(covers) for m in METRICS}
        rows.append(
            ClassifierRow(one, means, intervals, ranks, {m: dict(seeds[one][m]) if seeds else {} for m in METRICS})
        )
    return with_ranks(rows, pairs, quantity)


def with_ranks(
    rows: Sequence[ClassifierRow], pairs: Mapping[tuple[Metric, Covers], Sequence[Pair]], quantity: Quantity
) -> list[ClassifierRow]:
    """Rank accuracies and skill, by pairs; of skill that is lost, the least is best."""
    if quantity not in ("accuracy", "skill_lost") or not pairs:
        return list(rows)
    ranked = {
        (m, c): _ranks({row.classifier: row.intervals[m][c].mean for row in rows}, of_key, quantity == "skill_lost")
        for (m, c), of_key in pairs.items()
    }
    return [
        replace(row, ranks={m: {c: ranked[m, c][row.classifier] for c in of} for m, of in row.intervals.items()})
        for row in rows
    ]


def _ranks(
    means: Mapping[Classifier, float], pairs: Sequence[Pair], lowest_first: bool
) -> Mapping[Classifier, RankRange | None]:
    """None for those without a number, and for all where no pair has an interval: nothing tells them apart."""
    if pairs and all(pair.interval.refused for pair in pairs):
        return dict.fromkeys(means)
    told = {one: -mean if lowest_first else mean for one, mean in means.items() if not math.isnan(mean)}
    among = [pair for pair in pairs if pair.a in told and pair.b in told]
    ranked = rank_ranges(told, [pair.negated() for pair in among] if lowest_first else among)
    return {one: ranked.get(one) for one in means}
