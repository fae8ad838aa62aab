"""What is known of means over tasks: the estimate, under any interval, of any weighted sum of them."""

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
from shotproof.stats.intervals import Covers, Estimate, Spread
from shotproof.stats.shuffles import ShuffledMeans, ShuffledTasks

DEPLETION: Final = "depletion"
Units = Literal["images", "classes"]
MeanOf = tuple[str | None, Classifier, Metric]  # a task set by its digest

# A weighted sum of means: of which replicates (by number), classifier and metric, with which weight.
Terms = Mapping[tuple[int, Classifier, Metric], float]


@dataclass(frozen=True)
class Combination:
    """A weighted sum of means or, where `value` is set, what has this value and changes as the sum does (delta method).

    refused: why it can be given no number
    """

    terms: Terms
    value: float | None = None
    refused: str | None = None

    def minus(self, other: Combination) -> Combination:
        """The difference; both are sums, or both have a value."""
        value = None if self.value is None or other.value is None else self.value - other.value
        return Combination(add_terms((self.terms, 1.0), (other.terms, -1.0)), value, self.refused or other.refused)


def add_terms(*parts: tuple[Terms, float]) -> dict[tuple[int, Classifier, Metric], float]:
    """Weighted sums, each with a weight, as one."""
    total: dict[tuple[int, Classifier, Metric], float] = {}
    for terms, factor in parts:
        for key, weight in terms.items():
            total[key] = total.get(key, 0.0) + factor * weight
    return {key: weight for key, weight in total.items() if weight}


@dataclass(frozen=True)
class Replicates:
    """Task sets of one design, sampler and attributes, in the order of their seeds: the same drawn again."""

    sets: list[Evaluated]

    @property
    def label(self) -> str:
        """What tables call them."""
        return self.sets[0].label

    @property
    def origin(self) -> Origin:
        """What the first of them is."""
        return self.sets[0].origin

    @property
    def tasks(self) -> int:
        """How many tasks they have in all."""
        return sum(one.tasks for one in self.sets)

    @property
    def seeds(self) -> list[int | None]:
        """Their seeds."""
        return [one.origin.seed for one in self.sets]

    @property
    def matches(self) -> list[str]:
        """What the tasks of each set are matched by; a set that does not say what it is matches no other."""
        return [one.origin.match or f"no match: {id(one)}" for one in self.sets]

    @property
    def classifiers(self) -> list[Classifier]:
        """Those that were evaluated on all of them."""
        return [one for one in self.sets[0].values if all(one in other.values for other in self.sets)]

    def values(self, classifier: Classifier, metric: Metric) -> dict[str, FloatArray]:
        """The values of each set, by what its tasks are matched by: [tasks] each."""
        return {key: one.values[classifier][metric] for key, one in zip(self.matches, self.sets, strict=True)}

    def all_values(self, classifier: Classifier) -> dict[Metric, FloatArray]:
        """The values of a classifier on the tasks of all sets: [tasks] each."""
        return {metric: np.concatenate(list(self.values(classifier, metric).values())) for metric in METRICS}

    def chance(self, metric: Metric) -> float:
        """What guessing gives on average over all tasks, in percent."""
        return sum(one.chance[metric] * one.tasks for one in self.sets) / self.tasks

    def means(self, classifier: Classifier, metric: Metric) -> dict[int | None, float]:
        """The mean of each set, by its seed."""
        return {one.origin.seed: float(one.values[classifier][metric].mean()) for one in self.sets}


@dataclass(frozen=True)
class Reevaluated:
    """What re-evaluation told, for the intervals that need it; where it could not be done, the reason.

    depletion: Acc and wAcc of each classifier on tasks without replacement, [tasks] each
    halves: means on split halves of the images, of the classes
    class_uses: in how many tasks without replacement each class is
    best_query: the best number of queries per class for tasks without replacement
    at_best_query: as `depletion`, with so many queries; None where they were not evaluated
    shuffled: task sets whose words were shuffled; None if they were not evaluated
    """

    depletion: Mapping[Classifier, Mapping[Metric, FloatArray]] | str | None = None
    halves: Mapping[Units, HalvedMeans | str] = field(default_factory=dict)
    class_uses: Mapping[str, int] = field(default_factory=dict)
    best_query: int | None = None
    at_best_query: Mapping[Classifier, Mapping[Metric, FloatArray]] | None = None
    shuffled: ShuffledTasks | None = None

    @property
    def depletion_tasks(self) -> int | None:
        """How many tasks without replacement were drawn and evaluated; None where none were."""
        if self.depletion is None or isinstance(self.depletion, str):
            return None
        return len(next(iter(self.depletion.values()))["acc"])

    @property
    def tasks_at_best_query(self) -> int | None:
        """How many tasks without replacement have the best number of queries; None where none were evaluated."""
        return None if self.at_best_query is None else len(next(iter(self.at_best_query.values()))["acc"])


@dataclass(frozen=True)
class Evidence:
    """Everything that is known of one design."""

    replicates: Sequence[Replicates]
    reevaluated: Reevaluated = field(default_factory=Reevaluated)

    def combined(self, covers: Covers, combination: Combination) -> Estimate:
        """The combination with its spread; refused where there is none."""
        if combination.refused:
            return Estimate(math.nan, None, combination.refused)
        estimate = self.estimate(covers, combination.terms)
        if combination.value is None:
            return estimate
        return Estimate(combination.value, estimate.spread, estimate.refused)

    def estimate(self, covers: Covers, terms: Terms) -> Estimate:
        """Estimate the weighted sum with its spread; refused if there is none.

        What is lost beyond a placebo varies at least as much as if the words meant nothing.
        """
        estimate = self._estimate(covers, terms)
        null = self._null_spread(terms)
        if estimate.spread is None or null is None or null.half_width <= estimate.spread.half_width:
            return estimate
        return Estimate(estimate.mean, null)

    def _estimate(self, covers: Covers, terms: Terms) -> Estimate:
        if covers == DEPLETION:
            reason = self._no_depletion(terms)
            if reason:
                return Estimate(self.mean(terms), None, reason)
            return _over_tasks([(self._depleted(*key), weight) for key, weight in terms.items()])
        estimate = self.over_tasks(terms)
        if covers == "sampler":
            return estimate
        halves = self.reevaluated.halves.get(covers, "no halves of the data were evaluated")
        if isinstance(halves, str):
            return Estimate(estimate.mean, None, halves)
        for number in dict.fromkeys(number for number, _, _ in terms):
            reason = halves.refused.get(self.replicates[number].origin.tasks_digest)
            if reason:
                return Estimate(estimate.mean, None, f"{self.replicates[number].label}: {reason}")
        # On halves of the data, replicates are drawn with the same seeds: the first is enough.
        weights: dict[MeanOf, float] = {
            (self.replicates[number].origin.tasks_digest, classifier, metric): weight
            for (number, classifier, metric), weight in terms.items()
        }
        return estimate.plus(halves.spread(weights))

    def over_tasks(self, terms: Terms) -> Estimate:
        """Estimate the weighted sum with the variance over tasks alone, which falls with their number."""
        return _over_tasks([(self._values(*key), weight) for key, weight in terms.items()])

    def is_shuffled(self, contrast: Mapping[int, float]) -> bool:
        """Return whether shuffles tell how a weighted sum over replicates varies if the words mean nothing."""
        names = [] if self._shuffled is None else self._shuffled.names
        placebos = self._placebos(contrast)
        means = [(like, one, "acc") for place, like in placebos.items() for one in self.replicates[place].classifiers]
        return bool(means) and set(means) <= set(names)

    @property
    def _shuffled(self) -> ShuffledMeans | None:
        return None if self.reevaluated.shuffled is None else self.reevaluated.shuffled.means

    def _placebos(self, numbers: Iterable[int]) -> dict[int, str | None]:
        """Map those of these replicates that are placebos to the digest of the set that they are placebos of."""
        origins = {number: self.replicates[number].origin for number in numbers}
        return {number: origin.like for number, origin in origins.items() if origin.sampler == PLACEBO}

    def _null_spread(self, terms: Terms) -> Spread | None:
        """Estimate how a sum varies if words mean nothing; None unless it has both task sets and their placebos."""
        shuffled = self._shuffled
        placebos = self._placebos(dict.fromkeys(number for number, _, _ in terms))
        if shuffled is None or not placebos:
            return None
        of_sets: dict[MeanOf, float] = {}
        of_placebos: dict[MeanOf, float] = {}
        tasks = min(self.replicates[number].tasks for number in placebos)
        for (number, classifier, metric), weight in terms.items():
            if number in placebos:
                of_placebos[placebos[number], classifier, metric] = weight
            else:
                of_sets[self.replicates[number].origin.tasks_digest, classifier, metric] = weight
        if not (of_sets.keys() & of_placebos.keys() & set(shuffled.names)):
            return None
        return shuffled.spread(of_sets, of_placebos, tasks)

    def chance(self, contrast: Mapping[int, float], metric: Metric) -> float:
        """What guessing gives for a weighted sum over replicates, by their number."""
        return sum(weight * self.replicates[number].chance(metric) for number, weight in contrast.items())

    def mean(self, terms: Terms) -> float:
        """The weighted sum on the tasks given."""
        return self.over_tasks(terms).mean

    def by_task(self, terms: Terms) -> dict[tuple[str, ...], FloatArray]:
        """The weighted sum task by task, apart for tasks that are not matched: it is the sum of their means."""
        return _by_match([(self._values(*key), weight) for key, weight in terms.items()])

    def _values(self, number: int, classifier: Classifier, metric: Metric) -> dict[str, FloatArray]:
        return self.replicates[number].values(classifier, metric)

    def _depleted(self, number: int, classifier: Classifier, metric: Metric) -> dict[str, FloatArray]:
        if self.replicates[number].origin.sampler == DEPLETION:
            return self._values(number, classifier, metric)
        assert isinstance(self.reevaluated.depletion, Mapping)
        return {"drawn without replacement": self.reevaluated.depletion[classifier][metric]}

    def _no_depletion(self, terms: Terms) -> str | None:
        """Why there is no such interval; None where there is one."""
        of = [self.replicates[number] for number in dict.fromkeys(number for number, _, _ in terms)]
        drawn_anew = [one for one in of if one.origin.sampler != DEPLETION]
        others = sorted(one.label for one in drawn_anew if not one.origin.is_random)
        if others:
            return f"only random tasks can be drawn without replacement; these are {', '.join(others)} tasks"
        if not drawn_anew or isinstance(self.reevaluated.depletion, Mapping):
            return None
        return self.reevaluated.depletion or "no tasks without replacement were evaluated"


def by_design(sets: Iterable[Evaluated]) -> dict[Design, list[Evaluated]]:
    """The task sets of each design, in the order given."""
    found: dict[Design, list[Evaluated]] = {}
    for one in sets:
        found.setdefault(one.origin.design, []).append(one)
    return found


def replicates_of(sets: Sequence[Evaluated]) -> list[Replicates]:
    """Task sets that differ in the seed alone, together.

    Raises:
        Mismatch: matched sets have unequal numbers of tasks, or no classifier was evaluated on all seeds.
    """
    first_of: dict[str, Evaluated] = {}
    by_label: dict[str, list[Evaluated]] = {}
    for one in sets:
        by_label.setdefault(one.label, []).append(one)
        first = first_of.setdefault(one.origin.match, one) if one.origin.match else one
        if first.tasks != one.tasks:
            raise Mismatch(
                f"the {first.label} and {one.label} tasks are matched one by one, but there are {first.tasks} and "
                f"{one.tasks} of them: evaluate the same number of both"
            )
    found = [Replicates(sorted(group, key=_seed)) for group in by_label.values()]
    for replicates in found:
        if not replicates.classifiers:
            digests = " and ".join(one.origin.tasks_digest or UNKNOWN for one in replicates.sets)
            raise Mismatch(
                f"no classifier was evaluated on all '{replicates.label}' task sets of one design, which differ in the "
                f"seed ({digests}): evaluate on all of them, or give the results on one"
            )
    return found


def _seed(one: Evaluated) -> int:
    return -1 if one.origin.seed is None else one.origin.seed


def _over_tasks(terms: Sequence[tuple[Mapping[str, FloatArray], float]]) -> Estimate:
    """The weighted sum of means over tasks: paired where terms have the same tasks or matched ones, else independent.

    Each term has its values by what the tasks are matched by, with its weight.
    """
    estimate = None
    for part in _by_match(terms).values():
        estimate = estimate.minus(Estimate.over_tasks(-part)) if estimate else Estimate.over_tasks(part)
    assert estimate is not None  # there is a term, and it has tasks
    return estimate


def _by_match(terms: Sequence[tuple[Mapping[str, FloatArray], float]]) -> dict[tuple[str, ...], FloatArray]:
    """The weighted sum task by task, apart for tasks that are not matched, by what these are matched by."""
    shared: dict[tuple[int, ...], list[str]] = {}
    for key in dict.fromkeys(key for values, _ in terms for key in values):
        shared.setdefault(tuple(n for n, (values, _) in enumerate(terms) if key in values), []).append(key)
    found = {}
    for numbers, keys in shared.items():
        parts = []
        for values, weight in (terms[number] for number in numbers):
            part = np.concatenate([values[key] for key in keys])
            parts.append(weight * len(part) / sum(map(len, values.values())) * part)
        found[tuple(keys)] = np.sum(parts, axis=0)
    return found


def merge_identical(replicates: Sequence[Replicates]) -> tuple[list[Replicates], list[list[str]]]:
    """Keep the first of the task sets that stress the same thing with the same tasks, seed by seed.

    Args:
        replicates: the task sets of one design

    Returns:
        Those that are left, with all classifiers that were evaluated under either name, and the labels of sets that
        are the same, one list for each that has several.
    """
    alike: dict[object, list[Replicates]] = {}
    for one in replicates:
        digests, origin = tuple(each.origin.tasks_digest for each in one.sets), one.origin
        is_alone = origin.axis is None or None in digests
        alike.setdefault(id(one) if is_alone else (digests, origin.axis, origin.attributes), []).append(one)
    kept = []
    for same in alike.values():
        by_seed = zip(*(each.sets for each in same), strict=True)
        kept.append(Replicates([_merged(sets) for sets in by_seed]))
    return kept, [[each.label for each in same] for same in alike.values() if len(same) > 1]


def _merged(sets: Sequence[Evaluated]) -> Evaluated:
    """The first of the sets, with the classifiers of all."""
    first, *others = sets
    for other in others:
        first = replace(
            first,
            values=first.values | {one: other.values[one] for one in other.values if one not in first.values},
            features=other.features | first.features,
            by_row=other.by_row | first.by_row,
        )
    return first
