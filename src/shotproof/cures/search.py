"""Search for a cure: remedies are fitted on some classes, chosen on others, and confirmed on a third part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.halvings import TASKS_PER_HALF
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.core.nouns import counted
from shotproof.core.runtime.progress import duration
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.cures.class_parts import CHOOSE, CONFIRM, FIT, ClassParts
from shotproof.cures.collect import find_missing_items
from shotproof.cures.cure import Cure, NotTried, SupportPoint, TriedRemedy
from shotproof.cures.effects import AS_IS, Measured, Outcome, conclude_effects, effects_of, measure
from shotproof.cures.remedy import Remedy, RemedyData, Treatment
from shotproof.cures.stage import Stage, draw_stage, plants_contexts
from shotproof.cures.support_remedies import RANDOM_SUPPORTS
from shotproof.stats.intervals import Interval
from shotproof.stats.pairs import Conclusion

TASKS_TO_CHOOSE = 200
TASKS_TO_CHANGE = 60  # tasks to choose on whose items are changed, which takes long
LEVEL = 0.95
HALVINGS = 50  # of the images, with 100 tasks on each half
SETTINGS_PER_REMEDY = 4  # for an estimate of the time, before remedies are fitted
SHOTS, CONTEXTS = (1, 2, 5, 10), (1, 2, 3, 5)  # of the supports whose losses are compared

Log = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """Remedies to try on a classifier, and the data to try them on.

    at_hand: task sets of one design, with their data
    data: what remedies are fitted on
    parts: classes by what they are for
    confirming: task sets that confirm
    remedies: remedies to try
    tasks: number of tasks of each set to choose on
    budget: seconds after which no further remedy is tried; None is no limit
    """

    at_hand: Inputs
    data: RemedyData
    parts: ClassParts
    confirming: Stage
    remedies: Sequence[Remedy]
    tasks: int = TASKS_TO_CHOOSE
    level: float = LEVEL
    budget: float | None = None


@dataclass(frozen=True)
class Choice:
    """Treatment that was chosen for a remedy.

    settings: number of treatments that were compared
    score: mean accuracy on stressed tasks where it was chosen, in percent; None without such tasks
    """

    remedy: Remedy
    treatment: Treatment
    settings: int
    score: float | None


def find_cure(plan: Plan, log: Log = lambda line: None, runtime: Runtime | None = None) -> Cure:
    """Try remedies, and recommend the one that was most accurate under stress where it was chosen, if it is confirmed.

    Args:
        plan: remedies and data
        log: called with one line per remedy
        runtime: runtime settings

    Returns:
        The remedies with their effects.

    Raises:
        InsufficientData: no task set can be drawn on the classes to choose on, or none measures reliance.
    """
    runtime = resolve(runtime)
    data = plan.data
    start = time.monotonic()
    choosing = draw_stage(
        plan.at_hand,
        plan.parts.catalog,
        CHOOSE,
        features=data.features,
        attributes=data.attributes,
        tasks=plan.tasks,
        changed_tasks=min(plan.tasks, TASKS_TO_CHANGE),
        runtime=runtime,
    )
    pace = _measure_pace(plan, choosing, time.monotonic() - start, runtime)
    log(_describe_cost(plan, choosing, pace))
    notes = [f"{label} tasks did not take part in choosing: {reason}" for label, reason in choosing.left_out.items()]
    choices, not_tried = _choose_treatments(plan, choosing, pace, log, runtime)
    choosing.release()
    with runtime.progress_bar("confirming remedies", None):
        measured = _confirm(plan, [choice.treatment for choice in choices], runtime)
    rows = _rows(plan, choices, measured)
    best = min((row for row in rows if row.helps), key=_order, default=None)
    evidence = next(iter(measured.values()))
    design = evidence.evidence.replicates[0].origin.design
    return Cure(
        encoder=data.features.name,
        method=data.method.spelling,
        data_set=design.data_set,
        design=design.shape,
        medium=data.catalog.medium,
        parts={part: plan.parts.count(part) for part in (FIT, CHOOSE, CONFIRM)},
        tasks=max(evidence.tasks(axis) for axis in evidence.contrasts),
        level=plan.level,
        tried=tuple(rows),
        not_tried=tuple(not_tried),
        supports=tuple(_support_curves(plan, evidence, runtime)),
        notes=tuple(dict.fromkeys([*notes, *([evidence.refused] if evidence.refused else [])])),
        recommended=None if best is None else best.remedy,
        collect=tuple(find_missing_items(plan.confirming, data, runtime)),
        treatments={str(choice.remedy): choice.treatment for choice in choices},
    )


@dataclass(frozen=True)
class _Pace:
    """Seconds that a task takes: to draw, and to evaluate the classifier as it is."""

    draw: float
    evaluate: float

    def seconds(self, plan: Plan, choosing: Stage, remedies: int) -> float:
        """Estimate the time of choosing and confirming a number of remedies."""
        return self.evaluate * SETTINGS_PER_REMEDY * remedies * _count(choosing) + self.confirming(plan, remedies)

    def confirming(self, plan: Plan, remedies: int) -> float:
        """Estimate the time of confirming a number of remedies, and of the curves by supports."""
        halved, quick = (_count_on_halves(stage(plan.confirming)) for stage in (_with_halvings, _quick))
        curves = len(SHOTS) * quick
        return self.draw * (halved + curves) + self.evaluate * (remedies * (_count(plan.confirming) + halved) + curves)


def _count_on_halves(stage: Stage) -> int:
    """Count the tasks that are drawn on halves of the images."""
    halvings, tasks = stage.inputs.halvings or HALVINGS, stage.inputs.tasks_per_half or TASKS_PER_HALF
    return 2 * len(stage.tasks) * halvings * tasks


def _count(stage: Stage) -> int:
    """Count the tasks of a stage."""
    return sum(map(len, stage.tasks))


def _measure_pace(plan: Plan, stage: Stage, seconds_to_draw: float, runtime: Runtime) -> _Pace:
    """Time the evaluation of the classifier as it is."""
    timed = stage if stage.tasks else plan.confirming
    features = timed.features_of(Treatment(AS_IS), plan.data.features)
    first, *others = timed.tasks
    timed.evaluate([first], features, [plan.data.method], runtime)  # what is made once is not timed
    start = time.monotonic()
    timed.evaluate(others, features, [plan.data.method], runtime)
    seconds = (time.monotonic() - start) / max(_count(timed) - len(first), 1)
    return _Pace(seconds_to_draw / max(_count(stage), 1), seconds)


def _describe_cost(plan: Plan, stage: Stage, pace: _Pace) -> str:
    """Say how long the search takes."""
    remedies = len(plan.remedies)
    limit = "" if plan.budget is None else f"; no further one is tried once {duration(plan.budget)} are used up"
    seconds = pace.seconds(plan, stage, remedies)
    return f"trying {counted(remedies, 'remedy', 'remedies')}: about {duration(seconds)}{limit}"


def _choose_treatments(
    plan: Plan, stage: Stage, pace: _Pace, log: Log, runtime: Runtime
) -> tuple[list[Choice], list[NotTried]]:
    """Choose the treatment of each remedy that is most accurate under stress on the classes to choose on."""
    choices: list[Choice] = []
    not_tried: list[NotTried] = []
    start = time.monotonic()
    with runtime.progress_bar("choosing remedies", len(plan.remedies)) as advance:
        for remedy in plan.remedies:
            spent = time.monotonic() - start + pace.confirming(plan, len(choices) + 1)
            if plan.budget is not None and choices and spent > plan.budget:
                not_tried.append(NotTried(str(remedy), f"the budget of {duration(plan.budget)} is used up"))
                continue
            try:
                treatments = remedy.treatments(plan.data)
                treatment, score = _choose(plan, stage, treatments, runtime)
            except InputError as error:
                not_tried.append(NotTried(str(remedy), str(error)))
                log(f"not tried  {remedy}: {error}")
            else:
                choices.append(Choice(remedy, treatment, len(treatments), score))
                log(f"tried      {remedy}: {treatment.name}")
            stage.release()
            advance(1)
    if not choices:
        raise InsufficientData(
            f"no remedy could be tried: {'; '.join(f'{row.remedy}: {row.reason}' for row in not_tried)}"
        )
    return choices, not_tried


def _choose(
    plan: Plan, stage: Stage, treatments: Sequence[Treatment], runtime: Runtime
) -> tuple[Treatment, float | None]:
    """Return the treatment that is most accurate under stress, of those that do not conclusively cost accuracy if any.

    Without tasks to choose on, or features of the copies of their supports, the first treatment is taken.
    """
    if not stage.tasks:
        return treatments[0], None
    features, method = plan.data.features, plan.data.method
    try:
        measured = [
            measure(stage, [treatment], features, method, with_halves=False, runtime=runtime)
            for treatment in treatments
        ]
    except Mismatch:
        return treatments[0], None
    if not measured[0].contrasts:
        return treatments[0], None
    scores = [
        (not _costs_accuracy(evidence, treatment.name, plan.level), _score(evidence, treatment.name))
        for evidence, treatment in zip(measured, treatments, strict=True)
    ]
    best = max(range(len(scores)), key=lambda index: (scores[index], -index))
    return treatments[best], scores[best][1]


def _score(measured: Measured, arm: str) -> float:
    """Compute the mean accuracy of an arm over the task sets that remedies are judged by, in percent.

    The share of the skill that is lost would not do: an arm that has lost all of its skill has none to lose.
    """
    accuracies = [measured.estimate(measured.stressed_accuracy(arm, axis))[1].mean for axis in measured.contrasts]
    return float(np.mean(accuracies))


def _costs_accuracy(measured: Measured, arm: str, level: float) -> bool:
    """Return whether an arm is conclusively less accurate than the classifier as it is, on plain tasks."""
    difference = measured.interval(measured.accuracy(arm).minus(measured.accuracy(AS_IS)), level)
    return not difference.refused and difference.high < 0


def _confirm(plan: Plan, treatments: Sequence[Treatment], runtime: Runtime) -> dict[str, Measured]:
    """Evaluate the chosen treatments on the classes to confirm on; by the name of the treatment.

    Treatments that leave the supports share one evaluation; each choice of supports has its own, with random supports
    beside it.
    """
    features, method = plan.data.features, plan.data.method
    groups: list[list[Treatment]] = [[treatment for treatment in treatments if treatment.sampler is None]]
    for treatment in treatments:
        if treatment.sampler is not None:
            groups.append([*([random_supports()] if _is_choice(treatment) else []), treatment])
    measured: dict[str, Measured] = {}
    for group in groups:
        if group:
            stage = _with_halvings(plan.confirming) if group[0].sampler is None else _quick(plan.confirming)
            evidence = measure(stage, group, features, method, with_halves=True, runtime=runtime)
            measured |= {treatment.name: evidence for treatment in group if treatment.name not in measured}
            stage.release()
    if not any(evidence.contrasts for evidence in measured.values()):
        raise InsufficientData(
            "no task set measures reliance on attributes, contexts or changes: there is no loss to lower; evaluate "
            "fewstab, ood or changed tasks first"
        )
    return measured


def random_supports() -> Treatment:
    """Return the treatment that the choice of supports is compared with."""
    return Treatment(RANDOM_SUPPORTS, sampler="chosen(choose='random')")


def _with_halvings(stage: Stage) -> Stage:
    """Return the stage with enough halvings for conclusions that are corrected for many remedies."""
    inputs = stage.inputs
    return stage if inputs.halvings else replace(stage, inputs=replace(inputs, halvings=HALVINGS, tasks_per_half=100))


def _quick(stage: Stage) -> Stage:
    """Return the stage with fewer re-evaluations: choosing supports on each half of the images takes long."""
    return stage if stage.inputs.halvings else replace(stage, inputs=stage.inputs.quickly())


def _is_choice(treatment: Treatment) -> bool:
    return treatment.sampler is not None and treatment.sampler.startswith("chosen")


def _rows(
    plan: Plan,
    choices: Sequence[Choice],
    measured_by_treatment: Mapping[str, Measured],
) -> list[TriedRemedy]:
    """Estimate and conclude the effects of all treatments, corrected for the number of treatments and axes."""
    rows = []
    conclusions = sum(len(measured_by_treatment[choice.treatment.name].contrasts) for choice in choices)
    for choice in choices:
        treatment = choice.treatment
        measured = measured_by_treatment[treatment.name]
        baseline = RANDOM_SUPPORTS if _is_choice(treatment) else AS_IS
        before, after = (measured.accuracy(arm) for arm in (baseline, treatment.name))
        rows.append(
            TriedRemedy(
                remedy=str(choice.remedy),
                family=choice.remedy.family,
                treatment=treatment.name,
                baseline=baseline,
                settings=choice.settings,
                plain=measured.plain,
                accuracy_before=measured.interval(before, plan.level),
                accuracy_after=measured.interval(after, plan.level),
                accuracy_difference=measured.interval(after.minus(before), plan.level),
                effects=tuple(effects_of(measured, treatment.name, baseline, plan.level, conclusions)),
                score=choice.score,
                apply=treatment.apply,
                needs=choice.remedy.needs,
            )
        )
    return _concluded(rows, plan.level)


def _concluded(rows: Sequence[TriedRemedy], level: float) -> list[TriedRemedy]:
    """Conclude on losses and accuracies, each corrected as one family over all remedies.

    Less is lost conclusively only from what is lost conclusively: without a loss there is nothing to cure. If a remedy
    trains several times, each training must lower the loss.
    """
    signs = iter(conclude_effects([effect.difference for row in rows for effect in row.effects], level))
    accuracy_signs = conclude_effects([row.accuracy_difference for row in rows], level)
    outcomes: dict[Conclusion, Outcome] = {
        "+": "hurts",
        "0": "cannot tell",
        "-": "helps",
    }
    concluded = []
    for row, accuracy_sign in zip(rows, accuracy_signs, strict=True):
        effects = []
        for effect in row.effects:
            outcome = outcomes[next(signs)]
            has_loss = not effect.before.refused and effect.before.low > 0
            is_lowered = has_loss and all(difference < 0 for difference in effect.trainings)
            outcome = "cannot tell" if outcome == "helps" and not is_lowered else outcome
            settled = outcome != "cannot tell" or not has_loss
            effects.append(replace(effect, outcome=outcome, more_tasks=None if settled else effect.more_tasks))
        concluded.append(replace(row, effects=tuple(effects), accuracy_conclusion=accuracy_sign))
    return concluded


def _order(row: TriedRemedy) -> tuple[bool, float, float]:
    """Order remedies: those that need nothing further, then by their accuracy under stress where they were chosen.

    Those without a score come last, by the loss that they lower most.
    """
    lowered = min(effect.difference.mean for effect in row.effects if effect.outcome == "helps")
    return (bool(row.needs), np.inf if row.score is None else -row.score, lowered)


def _support_curves(plan: Plan, measured: Measured, runtime: Runtime) -> Iterator[SupportPoint]:
    """Measure what is lost with fewer and more shots, and with supports from one context, two, and so on.

    Args:
        plan: the classifier and the task sets
        measured: evidence on the classifier as it is on the tasks that confirm
        runtime: runtime settings
    """
    shots = {tasks.record.shot for tasks in plan.confirming.tasks}
    shot = shots.pop() if len(shots) == 1 else None
    if shot is None:
        return
    for number in sorted({*SHOTS, shot}):
        redrawn = measured if number == shot else _measure_redrawn(plan, plan.at_hand, runtime, shot=number)
        for axis, lost in _losses(redrawn, plan.level):
            yield SupportPoint(axis, number, None, lost)
    planting = replace(plan.at_hand, tasks=[tasks for tasks in plan.at_hand.tasks if plants_contexts(tasks)])
    for count in (count for count in CONTEXTS if planting.tasks and 1 < shot >= count):
        for axis, lost in _losses(_measure_redrawn(plan, planting, runtime, support_contexts=count), plan.level):
            yield SupportPoint(axis, shot, count, lost)


def _measure_redrawn(plan: Plan, at_hand: Inputs, runtime: Runtime, **supports: int) -> Measured | None:
    """Measure the classifier as it is on the tasks drawn again with other supports; None if there are no such tasks."""
    features, attributes = plan.data.features, plan.data.attributes
    stage = draw_stage(
        at_hand,
        plan.parts.catalog,
        CONFIRM,
        features=features,
        attributes=attributes,
        runtime=runtime,
        **supports,
    )
    if not stage.tasks:
        return None
    return measure(_quick(stage), [], features, plan.data.method, with_halves=True, runtime=runtime)


def _losses(measured: Measured | None, level: float) -> Iterator[tuple[str, Interval]]:
    """Yield the share of the skill that the classifier as it is loses on each task set."""
    for axis in {} if measured is None else measured.contrasts:
        assert measured is not None
        yield axis, measured.interval(measured.skill_lost(AS_IS, axis, level), level)
