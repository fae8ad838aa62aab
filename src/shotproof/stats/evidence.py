"""Estimates of weighted sums of means over tasks, under any interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from shotproof.core.errors import Mismatch
from shotproof.core.records import UNKNOWN
from shotproof.results.evaluated import METRICS, Classifier, Evaluated, Metric
from shotproof.results.metrics import FloatArray
from shotproof.results.origin import PLACEBO, Design, Origin
from shotproof.stats.halves import HalvedMeans
from shotproof.stats.intervals import Estimate, IntervalName, Spread
from shotproof.stats.shuffles import ShuffledMeans, ShuffledTasks

DEPLETION: Final = "depletion"
Units = Literal["images", "classes"]
MeanOf = tuple[str | None, Classifier, Metric]  # a task set by its digest

# Weighted sum of means: the weights by replicates (their index), classifier and metric.
Terms = Mapping[tuple[int, Classifier, Metric], float]


@dataclass(frozen=True)
class Combination:
    """Weighted sum of means or, if `value` is set, a function of the means linearized by the sum (delta method).

    refused: the reason if it has no value
    """

    terms: Terms
    value: float | None = None
    refused: str | None = None

    def minus(self, other: Combination) -> Combination:
        """Subtract another combination; both are sums, or both have a value."""
        value = None if self.value is None or other.value is None else self.value - other.value
        return Combination(add_terms((self.terms, 1.0), (other.terms, -1.0)), value, self.refused or other.refused)


def add_terms(*parts: tuple[Terms, float]) -> dict[tuple[int, Classifier, Metric], float]:
    """Add weighted sums, each multiplied by a factor."""
    total: dict[tuple[int, Classifier, Metric], float] = {}
    for terms, factor in parts:
        for key, weight in terms.items():
            total[key] = total.get(key, 0.0) + factor * weight
    return {key: weight for key, weight in total.items() if weight}


@dataclass(frozen=True)
class Replicates:
    """Task sets of one design, sampler and attributes, drawn with different seeds, in the order of the seeds."""

    sets: list[Evaluated]

    @property
    def label(self) -> str:
        """Return the label shown in tables."""
        return self.sets[0].label

    @property
    def origin(self) -> Origin:
        """Return the origin of the first set."""
        return self.sets[0].origin

    @property
    def tasks(self) -> int:
        """Count the tasks of all sets."""
        return sum(task_set.tasks for task_set in self.sets)

    @property
    def seeds(self) -> list[int | None]:
        """Return the seed of each set."""
        return [task_set.origin.seed for task_set in self.sets]

    @property
    def matches(self) -> list[str]:
        """Return the key that matches the tasks of each set; a set of unknown origin matches no other."""
        return [task_set.origin.match or f"no match: {id(task_set)}" for task_set in self.sets]

    @property
    def classifiers(self) -> list[Classifier]:
        """Return the classifiers that were evaluated on all sets."""
        return [
            classifier
            for classifier in self.sets[0].values
            if all(classifier in task_set.values for task_set in self.sets)
        ]

    def values(self, classifier: Classifier, metric: Metric) -> dict[str, FloatArray]:
        """Return the values of each set, by the key that matches its tasks: [tasks] each."""
        return {key: task_set.values[classifier][metric] for key, task_set in zip(self.matches, self.sets, strict=True)}

    def all_values(self, classifier: Classifier) -> dict[Metric, FloatArray]:
        """Concatenate a classifier's values on the tasks of all sets: [tasks] each."""
        return {metric: np.concatenate(list(self.values(classifier, metric).values())) for metric in METRICS}

    def chance(self, metric: Metric) -> float:
        """Compute the mean accuracy of guessing over all tasks, in percent."""
        return sum(task_set.chance[metric] * task_set.tasks for task_set in self.sets) / self.tasks

    def means(self, classifier: Classifier, metric: Metric) -> dict[int | None, float]:
        """Compute the mean of each set, by its seed."""
        return {task_set.origin.seed: float(task_set.values[classifier][metric].mean()) for task_set in self.sets}


@dataclass(frozen=True)
class Reevaluated:
    """Results of re-evaluation, for the intervals that need it, or the reason if it was not possible.

    depletion: Acc and wAcc of each classifier on tasks without replacement, [tasks] each
    halves: means on split halves of the images, and of the classes
    class_uses: the number of tasks without replacement that each class is in
    best_query: the best number of queries per class for tasks without replacement
    at_best_query: like `depletion`, with that number of queries; None if not evaluated
    shuffled: task sets with shuffled words; None if not evaluated
    """

    depletion: Mapping[Classifier, Mapping[Metric, FloatArray]] | str | None = None
    halves: Mapping[Units, HalvedMeans | str] = field(default_factory=dict)
    class_uses: Mapping[str, int] = field(default_factory=dict)
    best_query: int | None = None
    at_best_query: Mapping[Classifier, Mapping[Metric, FloatArray]] | None = None
    shuffled: ShuffledTasks | None = None

    @property
    def depletion_tasks(self) -> int | None:
        """Count the evaluated tasks without replacement; None if there are none."""
        if self.depletion is None or isinstance(self.depletion, str):
            return None
        return len(next(iter(self.depletion.values()))["acc"])

    @property
    def tasks_at_best_query(self) -> int | None:
        """Count the tasks without replacement that have the best number of queries; None if not evaluated."""
        return None if self.at_best_query is None else len(next(iter(self.at_best_query.values()))["acc"])


@dataclass(frozen=True)
class Evidence:
    """Evaluations and re-evaluations of one design, from which means and their variances are estimated."""

    replicates: Sequence[Replicates]
    reevaluated: Reevaluated = field(default_factory=Reevaluated)

    def combined(self, interval_name: IntervalName, combination: Combination) -> Estimate:
        """Estimate the combination with its spread; refused if there is none."""
        if combination.refused:
            return Estimate(math.nan, None, combination.refused)
        estimate = self.estimate(interval_name, combination.terms)
        if combination.value is None:
            return estimate
        return Estimate(combination.value, estimate.spread, estimate.refused)

    def estimate(self, interval_name: IntervalName, terms: Terms) -> Estimate:
        """Estimate the weighted sum with its spread; refused if there is none.

        The spread of a loss beyond a placebo is at least that under the null hypothesis that the words do not matter.
        """
        estimate = self._estimate(interval_name, terms)
        null = self._null_spread(terms)
        if estimate.spread is None or null is None or null.half_width <= estimate.spread.half_width:
            return estimate
        return Estimate(estimate.mean, null)

    def _estimate(self, interval_name: IntervalName, terms: Terms) -> Estimate:
        if interval_name == DEPLETION:
            reason = self._reason_without_depletion(terms)
            if reason:
                return Estimate(self.mean(terms), None, reason)
            return _over_tasks([(self._depletion_values(*key), weight) for key, weight in terms.items()])
        estimate = self.over_tasks(terms)
        if interval_name == "sampler":
            return estimate
        halves = self.reevaluated.halves.get(interval_name, "no halves of the data were evaluated")
        if isinstance(halves, str):
            return Estimate(estimate.mean, None, halves)
        for number in dict.fromkeys(number for number, _, _ in terms):
            reason = halves.refused.get(self.replicates[number].origin.tasks_digest)
            if reason:
                return Estimate(estimate.mean, None, f"{self.replicates[number].label}: {reason}")
        # On halves of the data, replicates are drawn with the same seeds, so the first is enough.
        weights: dict[MeanOf, float] = {
            (self.replicates[number].origin.tasks_digest, classifier, metric): weight
            for (number, classifier, metric), weight in terms.items()
        }
        return estimate.plus(halves.spread(weights))

    def over_tasks(self, terms: Terms) -> Estimate:
        """Estimate the weighted sum with the variance over tasks alone, which falls with their number."""
        return _over_tasks([(self._values(*key), weight) for key, weight in terms.items()])

    def is_shuffled(self, contrast: Mapping[int, float]) -> bool:
        """Return whether shuffles give the null distribution of a weighted sum over replicates."""
        names = [] if self._shuffled is None else self._shuffled.names
        placebos = self._placebos(contrast)
        means = [
            (digest, classifier, "acc")
            for number, digest in placebos.items()
            for classifier in self.replicates[number].classifiers
        ]
        return bool(means) and set(means) <= set(names)

    @property
    def _shuffled(self) -> ShuffledMeans | None:
        return None if self.reevaluated.shuffled is None else self.reevaluated.shuffled.means

    def _placebos(self, numbers: Iterable[int]) -> dict[int, str | None]:
        """Map each of these replicates that is a placebo to the digest of the task set it is a placebo of."""
        origins = {number: self.replicates[number].origin for number in numbers}
        return {number: origin.like for number, origin in origins.items() if origin.sampler == PLACEBO}

    def _null_spread(self, terms: Terms) -> Spread | None:
        """Estimate the spread if words do not matter; None unless the sum has task sets and their placebos."""
        shuffled = self._shuffled
        placebos = self._placebos(dict.fromkeys(number for number, _, _ in terms))
        if shuffled is None or not placebos:
            return None
        set_weights: dict[MeanOf, float] = {}
        placebo_weights: dict[MeanOf, float] = {}
        tasks = min(self.replicates[number].tasks for number in placebos)
        for (number, classifier, metric), weight in terms.items():
            if number in placebos:
                placebo_weights[placebos[number], classifier, metric] = weight
            else:
                set_weights[self.replicates[number].origin.tasks_digest, classifier, metric] = weight
        if not (set_weights.keys() & placebo_weights.keys() & set(shuffled.names)):
            return None
        return shuffled.spread(set_weights, placebo_weights, tasks)

    def chance(self, contrast: Mapping[int, float], metric: Metric) -> float:
        """Compute a weighted sum over replicates, by their number, of the accuracy of guessing."""
        return sum(weight * self.replicates[number].chance(metric) for number, weight in contrast.items())

    def mean(self, terms: Terms) -> float:
        """Compute the weighted sum on the evaluated tasks."""
        return self.over_tasks(terms).mean

    def by_task(self, terms: Terms) -> dict[tuple[str, ...], FloatArray]:
        """Compute the weighted sum task by task, separately for unmatched tasks; their means add up to it."""
        return _by_match([(self._values(*key), weight) for key, weight in terms.items()])

    def _values(self, number: int, classifier: Classifier, metric: Metric) -> dict[str, FloatArray]:
        return self.replicates[number].values(classifier, metric)

    def _depletion_values(self, number: int, classifier: Classifier, metric: Metric) -> dict[str, FloatArray]:
        if self.replicates[number].origin.sampler == DEPLETION:
            return self._values(number, classifier, metric)
        assert isinstance(self.reevaluated.depletion, Mapping)
        return {"drawn without replacement": self.reevaluated.depletion[classifier][metric]}

    def _reason_without_depletion(self, terms: Terms) -> str | None:
        """Return the reason if there is no such interval; None if there is one."""
        replicates = [self.replicates[number] for number in dict.fromkeys(number for number, _, _ in terms)]
        redrawn = [task_sets for task_sets in replicates if task_sets.origin.sampler != DEPLETION]
        labels = sorted(task_sets.label for task_sets in redrawn if not task_sets.origin.is_random)
        if labels:
            return f"only random tasks can be drawn without replacement; these are {', '.join(labels)} tasks"
        if not redrawn or isinstance(self.reevaluated.depletion, Mapping):
            return None
        return self.reevaluated.depletion or "no tasks without replacement were evaluated"


def by_design(sets: Iterable[Evaluated]) -> dict[Design, list[Evaluated]]:
    """Group the task sets by design, in the order given."""
    groups: dict[Design, list[Evaluated]] = {}
    for task_set in sets:
        groups.setdefault(task_set.origin.design, []).append(task_set)
    return groups


def replicates_of(sets: Sequence[Evaluated]) -> list[Replicates]:
    """Group the task sets that differ only in the seed.

    Raises:
        Mismatch: if matched sets have unequal numbers of tasks, or no classifier was evaluated on all seeds.
    """
    first_by_match: dict[str, Evaluated] = {}
    by_label: dict[str, list[Evaluated]] = {}
    for task_set in sets:
        by_label.setdefault(task_set.label, []).append(task_set)
        first = first_by_match.setdefault(task_set.origin.match, task_set) if task_set.origin.match else task_set
        if first.tasks != task_set.tasks:
            raise Mismatch(
                f"the {first.label} and {task_set.label} tasks are matched one by one, but there are {first.tasks} and "
                f"{task_set.tasks} of them: evaluate the same number of both"
            )
    all_replicates = [Replicates(sorted(group, key=_seed)) for group in by_label.values()]
    for replicates in all_replicates:
        if not replicates.classifiers:
            digests = " and ".join(task_set.origin.tasks_digest or UNKNOWN for task_set in replicates.sets)
            raise Mismatch(
                f"no classifier was evaluated on all '{replicates.label}' task sets of one design, which differ in the "
                f"seed ({digests}): evaluate a classifier on all of them, or pass the results on one of them"
            )
    return all_replicates


def _seed(task_set: Evaluated) -> int:
    return -1 if task_set.origin.seed is None else task_set.origin.seed


def _over_tasks(terms: Sequence[tuple[Mapping[str, FloatArray], float]]) -> Estimate:
    """Estimate the weighted sum of means over tasks: paired if terms have the same or matched tasks, else independent.

    Each term has its values, by the key that matches their tasks, and its weight.
    """
    estimate = None
    for part in _by_match(terms).values():
        estimate = estimate.minus(Estimate.over_tasks(-part)) if estimate else Estimate.over_tasks(part)
    assert estimate is not None  # there is a term, and it has tasks
    return estimate


def _by_match(terms: Sequence[tuple[Mapping[str, FloatArray], float]]) -> dict[tuple[str, ...], FloatArray]:
    """Compute the weighted sum task by task, separately for tasks that are not matched, by the keys that match them."""
    shared: dict[tuple[int, ...], list[str]] = {}
    for key in dict.fromkeys(key for values, _ in terms for key in values):
        shared.setdefault(tuple(n for n, (values, _) in enumerate(terms) if key in values), []).append(key)
    sums = {}
    for numbers, keys in shared.items():
        parts = []
        for values, weight in (terms[number] for number in numbers):
            part = np.concatenate([values[key] for key in keys])
            parts.append(weight * len(part) / sum(map(len, values.values())) * part)
        sums[tuple(keys)] = np.sum(parts, axis=0)
    return sums


def merge_identical(replicates: Sequence[Replicates]) -> tuple[list[Replicates], list[list[str]]]:
    """Merge task sets that stress the same thing with the same tasks, seed by seed.

    Args:
        replicates: the task sets of one design

    Returns:
        The first of each, with all classifiers that were evaluated under any of the labels; and the labels of identical
        sets, one list for each that has several.
    """
    by_content: dict[object, list[Replicates]] = {}
    for candidate in replicates:
        digests, origin = tuple(task_set.origin.tasks_digest for task_set in candidate.sets), candidate.origin
        is_alone = origin.axis is None or None in digests
        by_content.setdefault(id(candidate) if is_alone else (digests, origin.axis, origin.attributes), []).append(
            candidate
        )
    merged = []
    for same in by_content.values():
        by_seed = zip(*(replicate.sets for replicate in same), strict=True)
        merged.append(Replicates([_merge_sets(sets) for sets in by_seed]))
    return merged, [[replicate.label for replicate in same] for same in by_content.values() if len(same) > 1]


def _merge_sets(sets: Sequence[Evaluated]) -> Evaluated:
    """Merge the classifiers of all sets into the first."""
    merged, *duplicates = sets
    for duplicate in duplicates:
        merged = replace(
            merged,
            values=merged.values
            | {
                classifier: duplicate.values[classifier]
                for classifier in duplicate.values
                if classifier not in merged.values
            },
            features=duplicate.features | merged.features,
            by_row=duplicate.by_row | merged.by_row,
        )
    return merged
