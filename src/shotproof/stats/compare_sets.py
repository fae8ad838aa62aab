"""How a comparison is made from task sets with their values; what intervals need beyond these is handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from shotproof.core.records import UNKNOWN
from shotproof.evaluation.evaluated import METRICS, Classifier, Evaluated, Metric
from shotproof.evaluation.metrics import rank_correlation
from shotproof.evaluation.origin import Design, reference
from shotproof.stats.block import Block, ClassifierRow, DetectorAgreement, Group
from shotproof.stats.comparison import Comparison
from shotproof.stats.evidence import Evidence, Reevaluated, Replicates, Terms, by_design, replicates_of
from shotproof.stats.intervals import Covers, Interval
from shotproof.stats.pairs import Pair, compare_pairs, ranks

# The detection accuracy of each of two attributes with the other taken for true, in percent, by their digests.
Detection = Mapping[tuple[str, str], tuple[float, float]]


def compare_sets(
    sets: Sequence[Evaluated],
    covers: tuple[Covers, ...],
    *,
    level: float = 0.95,
    metric: Metric = "acc",
    correct: bool = True,
    reevaluated: Mapping[Design, Reevaluated] | None = None,
    detection: Mapping[Design, Detection] | None = None,
) -> Comparison:
    """Compare all classifiers on all task sets, design by design.

    Args:
        sets: the task sets with their values, as `evaluated_sets` makes them
        covers: the intervals
        level: of the intervals
        metric: what ranks are by
        correct: by Holm for the number of pairs, within a metric and an interval
        reevaluated: what intervals other than `sampler` need, by design
        detection: how far one detector finds the words of another, by design

    Returns:
        The comparison, with one block per design.

    Raises:
        Mismatch: matched task sets have unequal numbers of tasks, or no classifier was evaluated on all seeds.
    """
    comparing = _Comparing(covers, level, correct)
    blocks: list[Block] = []
    notes: list[str] = []
    for design, of_design in sorted(by_design(sets).items(), key=lambda entry: entry[0].order):
        known = (reevaluated or {}).get(design, Reevaluated())
        evidence = Evidence(replicates_of(of_design), known)
        blocks.append(comparing.block(design, evidence, (detection or {}).get(design, {})))
        notes += [note for one in evidence.replicates for note in _left_out(one)]
        if known.depletion_tasks is not None:
            notes.append(f"depletion: {known.depletion_tasks} tasks without replacement, drawn for this interval")
    return Comparison(level, metric, correct, covers, blocks, list(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _Comparing:
    """How comparisons are made. A contrast has the weight of each task set that takes part, by its number.

    {0: 1.0} is the mean on the first set, {0: 1.0, 1: -1.0} the gap between the first and the second.
    """

    covers: tuple[Covers, ...]
    level: float
    correct: bool

    def block(self, design: Design, evidence: Evidence, detection: Detection) -> Block:
        replicates = evidence.replicates
        groups = [self.group(evidence, {number: 1.0}) for number in range(len(replicates))]
        origins = {one.label: one.origin for one in replicates if one.label != UNKNOWN}
        first = next((n for n, one in enumerate(replicates) if one.label == reference(origins)), None)
        gaps = [
            self.group(evidence, {first: 1.0, number: -1.0})
            for number, one in enumerate(replicates)
            if first is not None and number != first and one.label != UNKNOWN
            if set(one.classifiers) & set(replicates[first].classifiers)
        ]
        refused = {name: reason for name in self.covers if (reason := _refused_everywhere(groups, name))}
        agreements = _detector_agreements(replicates, groups, detection)
        return Block(design, groups, gaps, None if first is None else groups[first], refused, agreements)

    def group(self, evidence: Evidence, contrast: Mapping[int, float]) -> Group:
        """All classifiers and pairs of one contrast."""
        of = [evidence.replicates[number] for number in contrast]
        is_gap = len(of) > 1
        classifiers = [one for one in of[0].classifiers if all(one in other.classifiers for other in of)]
        pairs = {
            (metric, covers): self._pairs(evidence, classifiers, contrast, metric, covers)
            for metric in METRICS
            for covers in self.covers
        }
        intervals = {
            one: {metric: self._intervals(evidence, _terms(contrast, one, metric)) for metric in METRICS}
            for one in classifiers
        }
        ranked = {
            key: _ranks({str(one): intervals[one][key[0]][key[1]].mean for one in classifiers}, of_key)
            for key, of_key in pairs.items()
            if not is_gap
        }
        rows = [
            ClassifierRow(
                one,
                {metric: evidence.mean(_terms(contrast, one, metric)) for metric in METRICS},
                intervals[one],
                {m: {c: None if is_gap else ranked[m, c][str(one)] for c in self.covers} for m in METRICS},
                {metric: _by_seed(of, one, metric) for metric in METRICS},
            )
            for one in classifiers
        ]
        return Group(
            label=of[0].label,
            sampler=of[-1].origin.sampler,
            detector=of[-1].origin.detector,
            tasks=of[0].tasks,
            digests=[one.origin.tasks_digest for one in of[0].sets],
            seeds=[seed for seed in of[0].seeds if all(seed in one.seeds for one in of)],
            against=of[1].label if is_gap else None,
            paired=is_gap and not set(of[0].matches).isdisjoint(of[1].matches),
            rows=rows,
            pairs=pairs,
        )

    def _intervals(self, evidence: Evidence, terms: Terms) -> dict[Covers, Interval]:
        return {name: evidence.estimate(name, terms).interval(name, self.level) for name in self.covers}

    def _pairs(
        self,
        evidence: Evidence,
        classifiers: Sequence[Classifier],
        contrast: Mapping[int, float],
        metric: Metric,
        covers: Covers,
    ) -> list[Pair]:
        named = {str(one): one for one in classifiers}
        differences = {}
        for a, b in combinations(named, 2):
            below = {key: -weight for key, weight in _terms(contrast, named[b], metric).items()}
            differences[a, b] = evidence.estimate(covers, {**_terms(contrast, named[a], metric), **below})
        return compare_pairs(differences, covers, self.level, self.correct)


def _ranks(means: Mapping[str, float], pairs: Sequence[Pair]) -> Mapping[str, int | None]:
    """None for all where no pair has an interval: nothing tells the classifiers apart, or that they are alike."""
    if pairs and all(pair.interval.refused for pair in pairs):
        return dict.fromkeys(means)
    return ranks(means, pairs)


def _terms(contrast: Mapping[int, float], classifier: Classifier, metric: Metric) -> dict[Any, float]:
    return {(number, classifier, metric): weight for number, weight in contrast.items()}


def _by_seed(of: Sequence[Replicates], classifier: Classifier, metric: Metric) -> dict[int | None, float]:
    """The mean of each seed; of a gap, the difference of those seeds that both sides have."""
    first, *others = (one.means(classifier, metric) for one in of)
    for other in others:
        first = {seed: mean - other[seed] for seed, mean in first.items() if seed in other}
    return first


def _left_out(replicates: Replicates) -> list[str]:
    """Which classifiers are not in the table, for they were evaluated on some of the seeds alone."""
    everywhere = replicates.classifiers
    on_some = dict.fromkeys(one for given in replicates.sets for one in given.values if one not in everywhere)
    return [f"{replicates.label}: {one} is left out, it was not evaluated on all seeds" for one in on_some]


def _refused_everywhere(groups: Sequence[Group], covers: Covers) -> str | None:
    """The first reason, where no classifier has this interval."""
    reasons = [row.intervals[metric][covers].refused for group in groups for row in group.rows for metric in METRICS]
    return reasons[0] if all(reasons) else None


def _detector_agreements(
    replicates: Sequence[Replicates], groups: Sequence[Group], detection: Detection
) -> list[DetectorAgreement]:
    """Each pair of detectors whose attributes one sampler was given."""
    found = []
    for (first, one), (second, other) in combinations(zip(replicates, groups, strict=True), 2):
        a, b = first.origin, second.origin
        if a.spelling != b.spelling or a.attributes is None or b.attributes is None or a.attributes == b.attributes:
            continue
        worst = [(row.means["wacc"], same.means["wacc"]) for row in one.rows if (same := other.row(row.classifier))]
        found.append(
            DetectorAgreement(
                a.spelling,
                (one.label, other.label),
                (a.detector or UNKNOWN, b.detector or UNKNOWN),
                len(worst),
                rank_correlation([mine for mine, _ in worst], [theirs for _, theirs in worst]),
                detection.get((a.attributes, b.attributes)),
            )
        )
    return found
