"""How a comparison is made from task sets with their values; what intervals need beyond these is handed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from shotproof.comparison.comparison import CONTEXT, Comparison
from shotproof.comparison.notes import notes_on_design
from shotproof.comparison.numbers import listed
from shotproof.core.records import UNKNOWN
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.evaluated import METRICS, Classifier, Evaluated, Metric
from shotproof.results.metrics import rank_correlation
from shotproof.results.origin import Design
from shotproof.stats.block import (
    NOTHING_TO_LOSE,
    Block,
    ByTask,
    Concluded,
    DetectorAgreement,
    Differences,
    Group,
    Loss,
    Quantity,
)
from shotproof.stats.conclusions import conclude_losses
from shotproof.stats.data_sets import with_data_set_names
from shotproof.stats.evidence import (
    DEPLETION,
    Combination,
    Evidence,
    Reevaluated,
    Replicates,
    add_terms,
    by_design,
    merge_identical,
    replicates_of,
)
from shotproof.stats.intervals import Covers, Estimate
from shotproof.stats.pairs import Conclusion, Pair, conclude
from shotproof.stats.rows import classifier_rows, compared_pairs
from shotproof.stats.triples import Triple, Triples

# The detection accuracy of each of two attributes with the other taken for true, in percent, by their digests.
Detection = Mapping[tuple[str, str], tuple[float, float]]


def compare_sets(
    sets: Sequence[Evaluated],
    covers: tuple[Covers, ...],
    *,
    level: float = 0.95,
    metric: Metric = "acc",
    correct: bool = True,
    pairs: bool = True,
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
        pairs: compare all pairs of classifiers; of thousands, leave it to whoever reads `Group.by_task`
        reevaluated: what intervals other than `sampler` need, by design
        detection: how far one detector finds the words of another, by design

    Returns:
        The comparison, with one block per design.

    Raises:
        Mismatch: matched task sets have unequal numbers of tasks, or no classifier was evaluated on all seeds.
    """
    comparing = _Comparing(covers, level, correct, pairs)
    blocks: list[Block] = []
    notes: list[str] = []
    encoders = short_encoder_names(classifier.encoder for one in sets for classifier in one.values)
    for design, of_design in with_data_set_names(by_design(sets)).items():
        known = (reevaluated or {}).get(design, Reevaluated())
        replicates, identical = merge_identical(replicates_of(of_design))
        evidence = Evidence(replicates, known)
        blocks.append(comparing.block(design, evidence, (detection or {}).get(design, {})))
        of_data = f"{design.data_set}, " if len({one.origin.design.catalog for one in sets}) > 1 else ""
        place = "" if len({one.origin.design for one in sets}) == 1 else f"{of_data}{design.shape}: "
        notes += [f"{place}{listed(labels)} are the same tasks here" for labels in identical]
        notes += notes_on_design(blocks[-1], evidence, of_design, encoders, level, place)
    media = {one.origin.medium for one in sets}
    contexts = {one.origin.context for one in sets if one.origin.context}
    return Comparison(
        level,
        metric,
        correct,
        covers,
        conclude_losses(blocks, covers, level, correct),
        list(dict.fromkeys(notes)),
        medium=media.pop() if len(media) == 1 else None,
        context=contexts.pop() if len(contexts) == 1 else CONTEXT,
    )


Combine = Callable[[Classifier, Metric, Covers], Combination]


@dataclass(frozen=True)
class _Comparing:
    """How comparisons are made. A contrast has the weight of each task set that takes part, by its number.

    {0: 1.0} is the mean on the first set, {0: 1.0, 1: -1.0} the gap between the first and the second.
    """

    covers: tuple[Covers, ...]
    level: float
    correct: bool
    pairs: bool

    def block(self, design: Design, evidence: Evidence, detection: Detection) -> Block:
        replicates = evidence.replicates
        groups = [
            self.group(evidence, [number], partial(_linear, {number: 1.0}), "accuracy")
            for number in range(len(replicates))
        ]
        losses = [loss for number in range(len(replicates)) if (loss := self.loss(evidence, number))]
        refused = {name: reason for name in self.covers if (reason := _refused_everywhere(groups, name))}
        origins = {one.label: one.origin for one in replicates}
        placebos = {label: sham for label, origin in origins.items() if (sham := origin.placebo(origins))}
        agreements = _detector_agreements(replicates, groups, detection)
        return Block(design, groups, losses, placebos, refused, agreements)

    def loss(self, evidence: Evidence, number: int) -> Loss | None:
        """What is lost on a task set, against its reference; None where it has none that shares a classifier."""
        places = {one.label: place for place, one in enumerate(evidence.replicates)}
        origins = {one.label: one.origin for one in evidence.replicates}
        one = evidence.replicates[number]
        first = _place(one.origin.reference(origins), places)
        axis = one.origin.axis
        if first is None or axis is None or not set(one.classifiers) & set(evidence.replicates[first].classifiers):
            return None
        reference = evidence.replicates[first]
        classifiers = [each for each in one.classifiers if each in reference.classifiers]
        gap = {first: 1.0, number: -1.0}
        # The placebo of a reference that no attribute or context decides is the reference itself.
        has_sham = reference.origin.has_placebo
        sham_first = _place(reference.origin.placebo(origins), places) if has_sham else first
        sham = _place(one.origin.placebo(origins), places)
        placebo, lost = None, gap
        shams = [evidence.replicates[place] for place in (sham_first, sham) if place is not None]
        # Some classifiers with a placebo and some without could not be compared.
        everywhere = all(each in other.classifiers for other in shams for each in classifiers)
        if sham_first is not None and sham is not None and everywhere:
            placebo = {sham_first: 1.0, sham: -1.0}
            lost = {place: weight for place, weight in _minus(gap, placebo).items() if weight}
        sides = [first, number]
        gap_group = self.group(evidence, sides, partial(_linear, gap), "gap")
        placebo_group, excess = None, None
        if placebo is not None:
            placebo_group = self.group(evidence, [*sides, *placebo], partial(_linear, placebo), "placebo")
            excess = self.group(evidence, [*sides, *lost], partial(_linear, lost), "excess")
        return Loss(
            axis,
            gap_group,
            placebo_group,
            excess,
            self.group(evidence, [*sides, *lost], partial(self._skill, evidence, first, lost), "skill_lost"),
            {metric: reference.chance(metric) for metric in METRICS},
            {
                (metric, covers): self._unconcluded(evidence, excess or gap_group, lost, metric, covers)
                for metric in METRICS
                for covers in self.covers
            },
            evidence.is_shuffled(lost),
        )

    def group(self, evidence: Evidence, numbers: Sequence[int], combine: Combine, quantity: Quantity) -> Group:
        """All classifiers and pairs of one quantity, on the first of the task sets or between the first two."""
        of = [evidence.replicates[number] for number in dict.fromkeys(numbers)]
        is_lost = quantity != "accuracy"
        classifiers = [one for one in of[0].classifiers if all(one in other.classifiers for other in of)]
        estimates = {
            (metric, covers): {one: evidence.combined(covers, combine(one, metric, covers)) for one in classifiers}
            for metric in METRICS
            for covers in self.covers
        }
        differences: Differences = {}
        by_task: dict[Metric, dict[Classifier, ByTask]] = {}
        if self.pairs:
            differences = {key: _differences(evidence, classifiers, combine, *key) for key in estimates}
        else:
            by_task = {
                m: {one: evidence.by_task(combine(one, m, "sampler").terms) for one in classifiers} for m in METRICS
            }
        pairs = compared_pairs(estimates, differences, self.level, self.correct)
        seeds = {
            one: {m: _by_seed(of[:2], one, m) if quantity in ("accuracy", "gap") else {} for m in METRICS}
            for one in classifiers
        }
        rows = classifier_rows(estimates, pairs, quantity, self.level, seeds)
        return Group(
            label=of[0].label,
            sampler=of[is_lost].origin.sampler,
            detector=of[is_lost].origin.detector,
            tasks=of[0].tasks,
            digests=[one.origin.tasks_digest for one in of[0].sets],
            seeds=[seed for seed in of[0].seeds if all(seed in one.seeds for one in of)],
            against=of[1].label if is_lost else None,
            paired=is_lost and not set(of[0].matches).isdisjoint(of[1].matches),
            rows=rows,
            pairs=pairs,
            quantity=quantity,
            triples={} if is_lost else self._triples(evidence, numbers[0], pairs),
            values={} if is_lost else {one: of[0].all_values(one) for one in classifiers},
            by_task=by_task,
            axis=of[is_lost].origin.axis,
        )

    def _triples(
        self, evidence: Evidence, number: int, pairs: Mapping[tuple[Metric, Covers], Sequence[Pair]]
    ) -> dict[Metric, Triples]:
        """Of random tasks, where the same classifiers have an interval on tasks without replacement too."""
        of, known = evidence.replicates[number], evidence.reevaluated
        if (
            {"sampler", DEPLETION} - set(self.covers)
            or not of.origin.is_random
            or not isinstance(known.depletion, Mapping)
        ):
            return {}
        best = known.at_best_query
        found = {}
        for metric in METRICS:
            triples = []
            for closed, opened in zip(pairs[metric, "sampler"], pairs[metric, DEPLETION], strict=True):
                a, b = closed.a, closed.b
                terms = add_terms((_terms({number: 1.0}, a, metric), 1.0), (_terms({number: 1.0}, b, metric), -1.0))
                at_best = None
                if best is not None:
                    at_best = self._paired(Estimate.over_tasks(best[a][metric] - best[b][metric]))
                paired = self._paired(evidence.estimate(DEPLETION, terms))
                triples.append(Triple(a, b, closed.direct, opened.direct, paired, at_best))
            if triples:
                found[metric] = Triples(
                    triples, known.depletion_tasks or 0, known.best_query, known.tasks_at_best_query
                )
        return found

    def _paired(self, difference: Estimate) -> Conclusion:
        return conclude([difference], self.level, correct=False)[0]

    def _skill(
        self,
        evidence: Evidence,
        first: int,
        lost: Mapping[int, float],
        classifier: Classifier,
        metric: Metric,
        covers: Covers,
    ) -> Combination:
        """The share of the accuracy above chance on the reference that is lost, in percent."""
        chance = evidence.replicates[first].chance(metric)
        known = evidence.estimate(covers, _terms({first: 1.0}, classifier, metric))
        reached = known.interval(covers, self.level)
        above = known.mean - chance
        # Without a variance (all tasks alike, or no such interval) the mean itself decides.
        if min(above, above if reached.refused else reached.low - chance) <= 0:
            label = evidence.replicates[first].label
            return Combination({}, refused=f"{NOTHING_TO_LOSE}: at chance on {label} tasks")
        terms, own = _terms(lost, classifier, metric), _terms({first: 1.0}, classifier, metric)
        share = (evidence.mean(terms) - evidence.chance(lost, metric)) / above
        return Combination(add_terms((terms, 100 / above), (own, -100 * share / above)), 100 * share)

    def _unconcluded(
        self, evidence: Evidence, group: Group, lost: Mapping[int, float], metric: Metric, covers: Covers
    ) -> dict[Classifier, Concluded]:
        """Estimate what each classifier loses beyond what guessing loses, and what would tell.

        With unequal queries the worst class is by chance another, so that guessing may lose something.
        """
        guessed = evidence.chance(lost, metric)
        unconcluded = {}
        for row in group.rows:
            terms = _terms(lost, row.classifier, metric)
            estimate = evidence.estimate(covers, terms).less(guessed)
            unconcluded[row.classifier] = Concluded(estimate.interval(covers, self.level, evidence.over_tasks(terms)))
        return unconcluded


def _place(label: str | None, places: Mapping[str, int]) -> int | None:
    return None if label is None else places.get(label)


def _linear(contrast: Mapping[int, float], classifier: Classifier, metric: Metric, covers: Covers) -> Combination:
    return Combination(_terms(contrast, classifier, metric))


def _minus(first: Mapping[int, float], second: Mapping[int, float]) -> dict[int, float]:
    return {place: first.get(place, 0.0) - second.get(place, 0.0) for place in dict.fromkeys([*first, *second])}


def _differences(
    evidence: Evidence, classifiers: Sequence[Classifier], combine: Combine, metric: Metric, covers: Covers
) -> dict[tuple[Classifier, Classifier], Estimate]:
    combined = {one: combine(one, metric, covers) for one in classifiers}
    return {(a, b): evidence.combined(covers, combined[a].minus(combined[b])) for a, b in combinations(combined, 2)}


def _terms(contrast: Mapping[int, float], classifier: Classifier, metric: Metric) -> dict[Any, float]:
    return {(number, classifier, metric): weight for number, weight in contrast.items()}


def _by_seed(of: Sequence[Replicates], classifier: Classifier, metric: Metric) -> dict[int | None, float]:
    """The mean of each seed; of a gap, the difference of those seeds that both sides have."""
    first, *others = (one.means(classifier, metric) for one in of)
    for other in others:
        first = {seed: mean - other[seed] for seed, mean in first.items() if seed in other}
    return first


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
