"""Effects of treatments: what a classifier loses with a treatment minus what it loses without, task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.reevaluate import missing_inputs, reevaluate
from shotproof.core.runtime.runtime import Runtime
from shotproof.cures.remedy import Treatment
from shotproof.cures.stage import Stage
from shotproof.features.features import Features
from shotproof.learners.method import Method
from shotproof.results.applied_change import BACKGROUND_ALONE, PASTED, AppliedChange
from shotproof.results.evaluated import Classifier, evaluated_sets
from shotproof.results.origin import Origin
from shotproof.stats.evidence import Combination, Evidence, Reevaluated, add_terms, replicates_of
from shotproof.stats.intervals import Estimate, Interval, IntervalName, needed
from shotproof.stats.losses import LossContrast, terms_of
from shotproof.stats.pairs import Conclusion, conclude
from shotproof.tasks.sampler import Axis

# What a remedy may lower. Sets that were searched for the classifier itself are left out: another classifier would
# seem to lose less on them whatever it is.
_JUDGED: tuple[Axis, ...] = ("attributes", "contexts", "conditions", "changes")
_NOT_RELIANCE = (BACKGROUND_ALONE, "only-foreground", PASTED)


@dataclass(frozen=True)
class Arm:
    """Classifier with a treatment; `sets` maps the digest of each task set to the set that it is evaluated on."""

    classifier: Classifier
    sets: Mapping[str, str]


@dataclass(frozen=True)
class Measured:
    """Evidence on several arms of one stage.

    arms: by name of the treatment; several if it was trained several times
    contrasts: what is lost on each axis that remedies are judged by, by the label of its task set
    interval_names: intervals that estimates may have, the preferred first
    refused: why there is no interval for new images; None if there is
    """

    evidence: Evidence
    arms: Mapping[str, Sequence[Arm]]
    contrasts: Mapping[str, LossContrast]
    interval_names: tuple[IntervalName, ...]
    refused: str | None

    def skill_lost(self, treatment: str, axis: str, level: float) -> Combination:
        """Combine the share of skill that is lost on an axis with a treatment: the mean over its arms."""
        return mean_combination(self.skill_lost_by_arm(treatment, axis, level))

    def skill_lost_by_arm(self, treatment: str, axis: str, level: float) -> list[Combination]:
        """Combine the share of skill that each arm of a treatment loses on an axis."""
        name = self.interval_names[0]
        return [
            self._moved(arm, axis).skill_lost(self.evidence, arm.classifier, "acc", name, level)
            for arm in self.arms[treatment]
        ]

    def accuracy(self, treatment: str) -> Combination:
        """Combine the accuracy with a treatment on the plain tasks: the mean over its arms."""
        return self._accuracy(treatment, self._plain)

    def stressed_accuracy(self, treatment: str, axis: str) -> Combination:
        """Combine the accuracy with a treatment on the stressed tasks of an axis: the mean over its arms."""
        return self._accuracy(treatment, self.contrasts[axis].stressed)

    def _accuracy(self, treatment: str, index: int) -> Combination:
        return mean_combination(
            [
                Combination(terms_of({self._move(arm, index): 1.0}, arm.classifier, "acc"))
                for arm in self.arms[treatment]
            ]
        )

    def estimate(self, combination: Combination) -> tuple[IntervalName, Estimate]:
        """Estimate a combination under the first interval that it has."""
        estimates = [(name, self.evidence.combined(name, combination)) for name in self.interval_names]
        return next((named for named in estimates if named[1].spread is not None), estimates[0])

    def interval(self, combination: Combination, level: float) -> Interval:
        """Compute the first interval that a combination has."""
        name, estimate = self.estimate(combination)
        over_tasks = self.evidence.combined("sampler", combination)
        return estimate.interval(name, level, over_tasks)

    def tasks(self, axis: str) -> int:
        """Count the tasks of an axis."""
        return self.evidence.replicates[self.contrasts[axis].stressed].tasks

    def reference(self, axis: str) -> str:
        """Return the label of the reference of an axis."""
        return self.evidence.replicates[self.contrasts[axis].reference].label

    @property
    def plain(self) -> str:
        """Return the label of the tasks that a remedy must not cost accuracy on."""
        return self.evidence.replicates[self._plain].label

    @property
    def _plain(self) -> int:
        """Return the index of the random tasks; without any, of the reference of the first axis.

        On a reference whose queries show the contexts of the supports, such as `iid`, whatever relies on contexts less
        is less accurate: that is no cost.
        """
        random = (index for index, replicate in enumerate(self.evidence.replicates) if replicate.origin.is_random)
        return next(random, next(iter(self.contrasts.values())).reference)

    def _move(self, arm: Arm, index: int) -> int:
        """Return the index of the task set that an arm is evaluated on in place of another one."""
        moved = arm.sets.get(str(self.evidence.replicates[index].origin.tasks_digest))
        return index if moved is None else self._index_of[moved]

    @cached_property
    def _index_of(self) -> Mapping[str | None, int]:
        """Return the index of each task set, by digest."""
        return {
            task_set.origin.tasks_digest: index
            for index, replicate in enumerate(self.evidence.replicates)
            for task_set in replicate.sets
        }

    def _moved(self, arm: Arm, axis: str) -> LossContrast:
        """Return the contrast of an axis on the sets that the arm is evaluated on."""
        contrast = self.contrasts[axis]
        return replace(
            contrast,
            reference=self._move(arm, contrast.reference),
            stressed=self._move(arm, contrast.stressed),
            placebo=contrast.placebo and {self._move(arm, index): weight for index, weight in contrast.placebo.items()},
        )


def mean_combination(combinations: Sequence[Combination]) -> Combination:
    """Combine into the mean, which is refused if one of them is."""
    share = 1 / len(combinations)
    values = [combination.value for combination in combinations]
    return Combination(
        add_terms(*((combination.terms, share) for combination in combinations)),
        None if None in values else share * sum(value for value in values if value is not None),
        next((combination.refused for combination in combinations if combination.refused), None),
    )


AS_IS = "as it is"


def measure(
    stage: Stage,
    treatments: Sequence[Treatment],
    features: Features,
    method: Method,
    *,
    with_halves: bool,
    runtime: Runtime | None = None,
) -> Measured:
    """Evaluate a classifier as it is and with each treatment on the task sets of a stage.

    Args:
        stage: task sets
        treatments: treatments; several may choose supports only if they do so by the same sampler
        features, method: the classifier
        with_halves: whether to evaluate on halves of the images too, for the `images` interval
        runtime: runtime of the evaluation
    """
    plain = Treatment(AS_IS)
    arms: dict[str, list[Arm]] = {}
    by_features: dict[str, tuple[Features, dict[str, Method], list[Any]]] = {}
    all_tasks = list(stage.tasks)
    trained = [
        (treatment, replica)
        for treatment in {treatment.name: treatment for treatment in (plain, *treatments)}.values()
        for replica in (treatment.features or features, *treatment.replicas)
    ]
    for treatment, replica in trained:
        treated = stage.features_of(treatment, replica)
        used_method = treatment.method or method
        sets: dict[str, str] = {}
        chosen = []
        if treatment.sampler is not None:
            chosen = [stage.chosen(treatment.sampler, tasks, treated) for tasks in stage.tasks]
            sets = {before.digest: after.digest for before, after in zip(stage.tasks, chosen, strict=True)}
        known = {tasks.digest for tasks in all_tasks}
        all_tasks += [tasks for tasks in chosen if tasks.digest not in known]
        arms.setdefault(treatment.name, []).append(Arm(Classifier(treated.name, used_method.spelling), sets))
        _, methods, task_sets = by_features.setdefault(treated.digest, (treated, {}, []))
        methods[used_method.spelling] = used_method
        task_sets += [tasks for tasks in (chosen or stage.tasks) if tasks not in task_sets]
    results = [
        evaluated
        for treated, methods, task_sets in by_features.values()
        for evaluated in stage.evaluate(task_sets, treated, list(methods.values()), runtime)
    ]
    inputs = replace(
        stage.inputs,
        results=results,
        tasks=all_tasks,
        features=[treated for treated, _, _ in by_features.values()],
        methods=[used for _, methods, _ in by_features.values() for used in methods.values()],
    )
    return _with_evidence(inputs, arms, with_halves, runtime)


def _with_evidence(
    inputs: Inputs, arms: Mapping[str, Sequence[Arm]], with_halves: bool, runtime: Runtime | None
) -> Measured:
    sets = evaluated_sets(inputs.results)
    refused = missing_inputs(sets, inputs) if with_halves else None
    interval_names: tuple[IntervalName, ...] = (
        ("images", "sampler") if with_halves and refused is None else ("sampler",)
    )
    reevaluated = reevaluate(sets, interval_names, inputs, runtime) if with_halves else {}
    (design,) = dict.fromkeys(task_set.origin.design for task_set in sets)
    evidence = Evidence(replicates_of(sets), reevaluated.get(design, Reevaluated()))
    moved = {digest for same in arms.values() for arm in same for digest in arm.sets.values()}
    contrasts = {}
    for index, replicate in enumerate(evidence.replicates):
        if replicate.origin.tasks_digest in moved or not is_judged(replicate.origin):
            continue
        contrast = LossContrast.of(evidence, index)
        if contrast is not None:
            contrasts[replicate.label] = contrast
    return Measured(evidence, arms, contrasts, interval_names, refused)


def is_judged(origin: Origin) -> bool:
    """Return whether remedies are judged by the loss on such tasks."""
    change = AppliedChange.of(origin)
    return origin.axis in _JUDGED and (change is None or change.name not in _NOT_RELIANCE)


Outcome = Literal["helps", "hurts", "cannot tell"]


@dataclass(frozen=True)
class Effect:
    """Effect of a remedy on one axis, in percent of the skill.

    before, after: share of the skill that is lost
    difference: after minus before; negative if less is lost
    more_tasks: about how many more tasks would settle it; None if it is settled or no number of tasks would
    trainings: difference of each training, if the remedy trained several times; the others are their means
    """

    axis: str
    reference: str
    before: Interval
    after: Interval
    difference: Interval
    outcome: Outcome = "cannot tell"
    more_tasks: int | None = None
    trainings: tuple[float, ...] = ()


def effects_of(measured: Measured, arm: str, baseline: str, level: float, conclusions: int = 1) -> list[Effect]:
    """Estimate the effect of an arm on each axis; undecided, since conclusions are corrected for all remedies.

    Args:
        measured: evidence on the arms
        arm, baseline: names of the treatments
        level: confidence level
        conclusions: number of conclusions that are corrected together, which the number of further tasks allows for
    """
    effects = []
    for axis in measured.contrasts:
        before, after = (measured.skill_lost(name, axis, level) for name in (baseline, arm))
        difference = measured.interval(after.minus(before), level)
        corrected = measured.interval(after.minus(before), 1 - (1 - level) / conclusions)
        further = needed(corrected, measured.tasks(axis))
        trainings = [lost.minus(before) for lost in measured.skill_lost_by_arm(arm, axis, level)]
        has_several = len(trainings) > 1 and not difference.refused
        effects.append(
            Effect(
                axis,
                measured.reference(axis),
                measured.interval(before, level),
                measured.interval(after, level),
                difference,
                more_tasks=further.tasks if further else None,
                trainings=tuple(measured.estimate(each)[1].mean for each in trainings) if has_several else (),
            )
        )
    return effects


def conclude_effects(intervals: Sequence[Interval], level: float) -> list[Conclusion]:
    """Conclude which differences are above or below zero, corrected by Holm for their number."""
    return conclude([interval.estimate for interval in intervals], level, correct=True)
