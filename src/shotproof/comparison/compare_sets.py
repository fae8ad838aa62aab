"""Comparison of classifiers on task sets, from values by task; further data that intervals need is passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from shotproof.comparison.comparison import CONTEXT, Comparison
from shotproof.comparison.notes import notes_on_design
from shotproof.comparison.numbers import listed
from shotproof.core.records import UNKNOWN
from shotproof.results.applied_change import AppliedChange
from shotproof.results.encoder_names import short_encoder_names
from shotproof.results.evaluated import METRICS, Classifier, Evaluated, Metric
from shotproof.results.metrics import rank_correlation
from shotproof.results.origin import Design
from shotproof.stats.block import (
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
from shotproof.stats.intervals import Estimate, IntervalName
from shotproof.stats.losses import LossContrast, terms_of
from shotproof.stats.pairs import Conclusion, Pair, conclude
from shotproof.stats.rows import classifier_rows, compared_pairs
from shotproof.stats.triples import Triple, Triples

# Detection accuracy of each of two sets of attributes with the other as ground truth, in percent, by their digests.
Detection = Mapping[tuple[str, str], tuple[float, float]]


def compare_sets(
    sets: Sequence[Evaluated],
    interval_names: tuple[IntervalName, ...],
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
        sets: task sets with their values, from `evaluated_sets`
        interval_names: names of the intervals
        level: level of the intervals
        metric: metric of ranks
        correct: whether to correct by Holm for the number of pairs, within a metric and an interval
        pairs: whether to compare all pairs of classifiers; if not, `Group.by_task` has what a faster comparison of
            thousands needs
        reevaluated: data that intervals other than `sampler` need, by design
        detection: detection accuracies of pairs of detectors, by design

    Returns:
        The comparison, with one block per design.

    Raises:
        Mismatch: if matched task sets have unequal numbers of tasks, or no classifier was evaluated on all seeds.
    """
    builder = _Builder(interval_names, level, correct, pairs)
    blocks: list[Block] = []
    changes: dict[tuple[Design, str], AppliedChange] = {}
    notes: list[str] = []
    encoders = short_encoder_names(classifier.encoder for task_set in sets for classifier in task_set.values)
    several_data_sets = len({task_set.origin.design.catalog for task_set in sets}) > 1
    several_designs = len({task_set.origin.design for task_set in sets}) > 1
    for design, design_sets in with_data_set_names(by_design(sets)).items():
        replicates, identical = merge_identical(replicates_of(design_sets))
        evidence = Evidence(replicates, (reevaluated or {}).get(design, Reevaluated()))
        blocks.append(builder.block(design, evidence, (detection or {}).get(design, {})))
        for task_set in replicates:
            if (change := AppliedChange.of(task_set.origin)) is not None:
                changes[design, task_set.label] = change
        data_set = f"{design.data_set}, " if several_data_sets else ""
        place = f"{data_set}{design.shape}: " if several_designs else ""
        notes += [f"{place}{listed(labels)} are the same tasks here" for labels in identical]
        notes += notes_on_design(blocks[-1], evidence, design_sets, encoders, level, place)
    media = {task_set.origin.medium for task_set in sets}
    contexts = {task_set.origin.context for task_set in sets if task_set.origin.context}
    return Comparison(
        level,
        metric,
        correct,
        interval_names,
        conclude_losses(blocks, interval_names, level, correct),
        list(dict.fromkeys(notes)),
        medium=media.pop() if len(media) == 1 else None,
        context=contexts.pop() if len(contexts) == 1 else CONTEXT,
        changes=changes,
    )


Combine = Callable[[Classifier, Metric, IntervalName], Combination]


@dataclass(frozen=True)
class _Builder:
    """Builder of blocks, losses and groups. A contrast is the weight of each task set that takes part, by its index.

    {0: 1.0} is the mean on the first set, {0: 1.0, 1: -1.0} the gap between the first and the second.
    """

    interval_names: tuple[IntervalName, ...]
    level: float
    correct: bool
    pairs: bool

    def block(self, design: Design, evidence: Evidence, detection: Detection) -> Block:
        replicates = evidence.replicates
        groups = [
            self.group(evidence, [index], partial(_linear, {index: 1.0}), "accuracy")
            for index in range(len(replicates))
        ]
        losses = [loss for index in range(len(replicates)) if (loss := self.loss(evidence, index))]
        refused = {name: reason for name in self.interval_names if (reason := _reason_if_refused(groups, name))}
        origins = {replicate.label: replicate.origin for replicate in replicates}
        placebos = {label: placebo for label, origin in origins.items() if (placebo := origin.placebo(origins))}
        agreements = _detector_agreements(replicates, groups, detection)
        return Block(design, groups, losses, placebos, refused, agreements)

    def loss(self, evidence: Evidence, index: int) -> Loss | None:
        """Measure the loss on a task set against its reference; None if no reference shares a classifier with it."""
        contrast = LossContrast.of(evidence, index)
        axis = evidence.replicates[index].origin.axis
        if contrast is None or axis is None:
            return None
        reference, lost = evidence.replicates[contrast.reference], contrast.lost
        sides = [contrast.reference, index]
        gap_group = self.group(evidence, sides, partial(_linear, contrast.gap), "gap")
        placebo_group, excess = None, None
        if contrast.placebo is not None:
            placebo_group = self.group(
                evidence, [*sides, *contrast.placebo], partial(_linear, contrast.placebo), "placebo"
            )
            excess = self.group(evidence, [*sides, *lost], partial(_linear, lost), "excess")

        def skill_lost(classifier: Classifier, metric: Metric, interval_name: IntervalName) -> Combination:
            return contrast.skill_lost(evidence, classifier, metric, interval_name, self.level)

        return Loss(
            axis,
            gap_group,
            placebo_group,
            excess,
            self.group(evidence, [*sides, *lost], skill_lost, "skill_lost"),
            {metric: reference.chance(metric) for metric in METRICS},
            {
                (metric, interval_name): self._unconcluded(evidence, excess or gap_group, lost, metric, interval_name)
                for metric in METRICS
                for interval_name in self.interval_names
            },
            evidence.is_shuffled(lost),
        )

    def group(self, evidence: Evidence, indices: Sequence[int], combine: Combine, quantity: Quantity) -> Group:
        """Measure one quantity of all classifiers and pairs, on the first task set or between the first two.

        Args:
            evidence: values of the task sets
            indices: task sets that the quantity needs
            combine: function that combines the values of a classifier into the quantity
            quantity: name of the quantity
        """
        sets = [evidence.replicates[index] for index in dict.fromkeys(indices)]
        is_lost = quantity != "accuracy"
        classifiers = [
            classifier
            for classifier in sets[0].classifiers
            if all(classifier in replicates.classifiers for replicates in sets)
        ]
        estimates = {
            (metric, interval_name): {
                classifier: evidence.combined(interval_name, combine(classifier, metric, interval_name))
                for classifier in classifiers
            }
            for metric in METRICS
            for interval_name in self.interval_names
        }
        differences: Differences = {}
        by_task: dict[Metric, dict[Classifier, ByTask]] = {}
        if self.pairs:
            differences = {key: _differences(evidence, classifiers, combine, *key) for key in estimates}
        else:
            by_task = {
                metric: {
                    classifier: evidence.by_task(combine(classifier, metric, "sampler").terms)
                    for classifier in classifiers
                }
                for metric in METRICS
            }
        pairs = compared_pairs(estimates, differences, self.level, self.correct)
        has_seeds = quantity in ("accuracy", "gap")
        seeds = {
            classifier: {metric: _by_seed(sets[:2], classifier, metric) if has_seeds else {} for metric in METRICS}
            for classifier in classifiers
        }
        rows = classifier_rows(estimates, pairs, quantity, self.level, seeds)
        return Group(
            label=sets[0].label,
            sampler=sets[is_lost].origin.sampler,
            detector=sets[is_lost].origin.detector,
            tasks=sets[0].tasks,
            digests=[task_set.origin.tasks_digest for task_set in sets[0].sets],
            seeds=[seed for seed in sets[0].seeds if all(seed in replicates.seeds for replicates in sets)],
            against=sets[1].label if is_lost else None,
            paired=is_lost and not set(sets[0].matches).isdisjoint(sets[1].matches),
            rows=rows,
            pairs=pairs,
            quantity=quantity,
            triples={} if is_lost else self._triples(evidence, indices[0], pairs),
            values={} if is_lost else {classifier: sets[0].all_values(classifier) for classifier in classifiers},
            by_task=by_task,
            axis=sets[is_lost].origin.axis,
        )

    def _triples(
        self, evidence: Evidence, index: int, pairs: Mapping[tuple[Metric, IntervalName], Sequence[Pair]]
    ) -> dict[Metric, Triples]:
        """Compare all pairs on random tasks with and without replacement; empty if there are no tasks without."""
        replicates, reevaluated = evidence.replicates[index], evidence.reevaluated
        if (
            {"sampler", DEPLETION} - set(self.interval_names)
            or not replicates.origin.is_random
            or not isinstance(reevaluated.depletion, Mapping)
        ):
            return {}
        best = reevaluated.at_best_query
        by_metric = {}
        for metric in METRICS:
            triples = []
            for closed, opened in zip(pairs[metric, "sampler"], pairs[metric, DEPLETION], strict=True):
                a, b = closed.a, closed.b
                terms = add_terms((terms_of({index: 1.0}, a, metric), 1.0), (terms_of({index: 1.0}, b, metric), -1.0))
                at_best = None
                if best is not None:
                    at_best = self._paired(Estimate.over_tasks(best[a][metric] - best[b][metric]))
                paired = self._paired(evidence.estimate(DEPLETION, terms))
                triples.append(Triple(a, b, closed.direct, opened.direct, paired, at_best))
            if triples:
                by_metric[metric] = Triples(
                    triples, reevaluated.depletion_tasks or 0, reevaluated.best_query, reevaluated.tasks_at_best_query
                )
        return by_metric

    def _paired(self, difference: Estimate) -> Conclusion:
        return conclude([difference], self.level, correct=False)[0]

    def _unconcluded(
        self, evidence: Evidence, group: Group, lost: Mapping[int, float], metric: Metric, interval_name: IntervalName
    ) -> dict[Classifier, Concluded]:
        """Estimate what each classifier loses beyond what guessing loses.

        With unequal queries, guessing too may lose on the worst class, since another class may be the worst by chance.
        """
        lost_by_chance = evidence.chance(lost, metric)
        unconcluded = {}
        for row in group.rows:
            terms = terms_of(lost, row.classifier, metric)
            estimate = evidence.estimate(interval_name, terms).less(lost_by_chance)
            unconcluded[row.classifier] = Concluded(
                estimate.interval(interval_name, self.level, evidence.over_tasks(terms))
            )
        return unconcluded


def _linear(
    contrast: Mapping[int, float], classifier: Classifier, metric: Metric, interval_name: IntervalName
) -> Combination:
    return Combination(terms_of(contrast, classifier, metric))


def _differences(
    evidence: Evidence, classifiers: Sequence[Classifier], combine: Combine, metric: Metric, interval_name: IntervalName
) -> dict[tuple[Classifier, Classifier], Estimate]:
    combined = {classifier: combine(classifier, metric, interval_name) for classifier in classifiers}
    return {
        (a, b): evidence.combined(interval_name, combined[a].minus(combined[b])) for a, b in combinations(combined, 2)
    }


def _by_seed(sets: Sequence[Replicates], classifier: Classifier, metric: Metric) -> dict[int | None, float]:
    """Return the mean of each seed; between two task sets, the difference for the seeds that both have."""
    first, *others = (replicates.means(classifier, metric) for replicates in sets)
    for other in others:
        first = {seed: mean - other[seed] for seed, mean in first.items() if seed in other}
    return first


def _reason_if_refused(groups: Sequence[Group], interval_name: IntervalName) -> str | None:
    """Return the first reason for a missing interval; None if any classifier has this interval."""
    reasons = [
        row.intervals[metric][interval_name].refused for group in groups for row in group.rows for metric in METRICS
    ]
    return reasons[0] if all(reasons) else None


def _detector_agreements(
    replicates: Sequence[Replicates], groups: Sequence[Group], detection: Detection
) -> list[DetectorAgreement]:
    """Compare each pair of detectors whose attributes the same sampler used."""
    agreements = []
    for (first, first_group), (second, second_group) in combinations(zip(replicates, groups, strict=True), 2):
        a, b = first.origin, second.origin
        if a.spelling != b.spelling or a.attributes is None or b.attributes is None or a.attributes == b.attributes:
            continue
        worst = [
            (row.means["wacc"], other.means["wacc"])
            for row in first_group.rows
            if (other := second_group.row(row.classifier))
        ]
        agreements.append(
            DetectorAgreement(
                a.spelling,
                (first_group.label, second_group.label),
                (a.detector or UNKNOWN, b.detector or UNKNOWN),
                len(worst),
                rank_correlation([accuracy for accuracy, _ in worst], [accuracy for _, accuracy in worst]),
                detection.get((a.attributes, b.attributes)),
            )
        )
    return agreements
