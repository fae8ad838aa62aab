"""Losses as weighted sums of means over task sets: stressed tasks against their reference, and beyond a placebo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shotproof.results.evaluated import Classifier, Metric
from shotproof.stats.block import NOTHING_TO_LOSE
from shotproof.stats.evidence import Combination, Evidence, Terms, add_terms
from shotproof.stats.intervals import IntervalName

Contrast = Mapping[int, float]  # weight of each task set that takes part, by its index


@dataclass(frozen=True)
class LossContrast:
    """Task sets that a loss is computed from, by their index.

    {0: 1.0} is the mean on the first set, {0: 1.0, 1: -1.0} the gap between the first and the second.

    placebo: the gap of the placebos; None if there are none
    classifiers: the classifiers that were evaluated on all of these sets
    """

    reference: int
    stressed: int
    placebo: Contrast | None
    classifiers: list[Classifier]

    @classmethod
    def of(cls, evidence: Evidence, stressed: int) -> LossContrast | None:
        """Find the reference and the placebos of a task set; None if no reference shares a classifier with it."""
        indices = {replicates.label: position for position, replicates in enumerate(evidence.replicates)}
        origins = {replicates.label: replicates.origin for replicates in evidence.replicates}
        origin = evidence.replicates[stressed].origin
        first = _index_of(origin.reference(origins), indices)
        if first is None or origin.axis is None:
            return None
        reference = evidence.replicates[first]
        classifiers = [name for name in evidence.replicates[stressed].classifiers if name in reference.classifiers]
        if not classifiers:
            return None
        # If no attribute or context decides the reference, it is its own placebo.
        has_placebo = reference.origin.has_placebo
        first_placebo = _index_of(reference.origin.placebo(origins), indices) if has_placebo else first
        second_placebo = _index_of(origin.placebo(origins), indices)
        if first_placebo is None or second_placebo is None:
            return cls(first, stressed, None, classifiers)
        # Some classifiers with a placebo and some without could not be compared.
        placebos = [evidence.replicates[position].classifiers for position in (first_placebo, second_placebo)]
        if not all(classifier in evaluated for evaluated in placebos for classifier in classifiers):
            return cls(first, stressed, None, classifiers)
        return cls(first, stressed, {first_placebo: 1.0, second_placebo: -1.0}, classifiers)

    @property
    def gap(self) -> Contrast:
        """Return the weights of the gap from the reference."""
        return {self.reference: 1.0, self.stressed: -1.0}

    @property
    def lost(self) -> Contrast:
        """Return the weights of what is lost: the gap minus that of the placebos, if there are any."""
        if self.placebo is None:
            return self.gap
        weights = {
            index: self.gap.get(index, 0.0) - self.placebo.get(index, 0.0) for index in [*self.gap, *self.placebo]
        }
        return {index: weight for index, weight in weights.items() if weight}

    def skill_lost(
        self, evidence: Evidence, classifier: Classifier, metric: Metric, interval_name: IntervalName, level: float
    ) -> Combination:
        """Combine into the share of the accuracy above chance on the reference that is lost, in percent."""
        reference_set = evidence.replicates[self.reference]
        chance = reference_set.chance(metric)
        reference_terms = terms_of({self.reference: 1.0}, classifier, metric)
        reference = evidence.estimate(interval_name, reference_terms)
        interval = reference.interval(interval_name, level)
        above = reference.mean - chance
        # If there is no interval (all tasks alike, or it is not available), the mean decides.
        if min(above, above if interval.refused else interval.low - chance) <= 0:
            return Combination({}, refused=f"{NOTHING_TO_LOSE}: at chance on {reference_set.label} tasks")
        terms = terms_of(self.lost, classifier, metric)
        share = (evidence.mean(terms) - evidence.chance(self.lost, metric)) / above
        return Combination(add_terms((terms, 100 / above), (reference_terms, -100 * share / above)), 100 * share)


def terms_of(contrast: Contrast, classifier: Classifier, metric: Metric) -> Terms:
    """Return the weighted sum of a classifier's means over task sets."""
    return {(index, classifier, metric): weight for index, weight in contrast.items()}


def _index_of(label: str | None, indices: Mapping[str, int]) -> int | None:
    """Return the index of a label; None if there is none."""
    return None if label is None else indices.get(label)
