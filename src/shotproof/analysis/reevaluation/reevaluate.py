"""Re-evaluation for the intervals `depletion`, `images` and `classes`, design by design."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.drawing import Drawing
from shotproof.analysis.reevaluation.halvings import means_on_halves
from shotproof.analysis.reevaluation.kept_arrays import (
    KeptArrays,
    Values,
    keep_halves,
    keep_shuffles,
    keep_values,
    kept_halves,
    kept_shuffles,
    kept_values,
)
from shotproof.analysis.reevaluation.repeated import Classifiers
from shotproof.analysis.reevaluation.shuffled_words import evaluate_shuffled
from shotproof.core.errors import InputError, InsufficientData, ShotproofError
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.grounds import ON_ITEMS
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import plan
from shotproof.results.evaluated import Classifier, Evaluated, values_of
from shotproof.results.origin import Design, Origin
from shotproof.stats.evidence import DEPLETION, Reevaluated, Replicates, Units, by_design, replicates_of
from shotproof.stats.halves import HalvedMeans
from shotproof.stats.intervals import Covers
from shotproof.stats.shuffles import ShuffledTasks
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet


def reevaluate(
    sets: Sequence[Evaluated], covers: Sequence[Covers], inputs: Inputs, runtime: Runtime | None = None
) -> Mapping[Design, Reevaluated]:
    """Evaluate what intervals need beyond the results, by design; data that is too small is a reason, no error."""
    runtime = resolve(runtime)
    reevaluated = {}
    for design, of_design in by_design(sets).items():
        known = Reevaluated()
        random = next((evaluated for evaluated in of_design if evaluated.origin.is_random), None)
        if random and DEPLETION in covers:
            known = _depleted(random, of_design, inputs, runtime)
        units = [name for name in get_args(Units) if name in covers]
        known = replace(
            known,
            halves={name: _halves(name, of_design, inputs, runtime) for name in units},
            shuffled=_shuffled(of_design, inputs, runtime),
        )
        if known != Reevaluated():
            reevaluated[design] = known
    return reevaluated


def are_kept(sets: Sequence[Evaluated], inputs: Inputs) -> bool:
    """Return whether re-evaluations on halves of the images were kept for every design."""
    return all(inputs.is_kept("images", of_design) for of_design in by_design(sets).values())


def missing_inputs(sets: Sequence[Evaluated], inputs: Inputs) -> str | None:
    """Say what re-evaluation on halves of the data lacks; None if everything is there.

    Args:
        sets: what was evaluated
        inputs: what there is
    """
    if not inputs.features:
        return "it re-evaluates the methods, and the features are not given"
    try:
        for one in sets:
            tasks = inputs.task_set(one.origin.tasks_digest, one.origin.design.catalog)
            inputs.catalog(one.origin.design.catalog)
            Drawing.of(tasks, inputs)
            for encoder, digest in one.features.items():
                inputs.features_of(encoder, digest)
        _methods(sets, inputs)
    except InputError as error:
        return str(error)
    return None


def _depleted(random: Evaluated, of_design: Sequence[Evaluated], inputs: Inputs, runtime: Runtime) -> Reevaluated:
    """Evaluate the classifiers of the random tasks on tasks without replacement, or say why that cannot be.

    If the results have such tasks, these are taken; if the inputs are there, tasks with the best number of queries are
    evaluated too.
    """
    given = next((evaluated for evaluated in of_design if evaluated.origin.sampler == DEPLETION), None)
    if given and set(random.values) <= set(given.values):
        known = Reevaluated(given.values, class_uses=_uses(given.rows[0]))
        if _on_items([random], inputs) or missing_inputs([random], inputs):
            return known
    else:
        kept = _without_replacement(random, random.origin.design.query, inputs, runtime)
        if kept.record.refused is not None:
            return Reevaluated(kept.record.refused)
        known = Reevaluated(kept_values(kept), class_uses=kept.facts["uses"])
    best = best_query(random, inputs)
    if best is None:
        return known
    kept = _without_replacement(random, best, inputs, runtime)
    return known if kept.record.refused else replace(known, best_query=best, at_best_query=kept_values(kept))


def _without_replacement(random: Evaluated, query: int | None, inputs: Inputs, runtime: Runtime) -> KeptArrays:
    """Evaluate the classifiers of the random tasks on all tasks without replacement that the data gives."""

    def make() -> KeptArrays:
        if refusal := _on_items([random], inputs):
            return KeptArrays.refusal(refusal)
        inputs.require(DEPLETION, "catalogs", "features")
        design = random.origin.design
        sizes: dict[str, Any] = {"way": design.way, "shot": design.shot, "query": query}
        skip = "skip_small_classes=True" in random.origin.spelling
        try:
            tasks = sample(
                inputs.catalog(design.catalog),
                f"{DEPLETION}(skip_small_classes={skip})",
                split=design.split,
                seed=inputs.seed,
                runtime=runtime,
                **{name: size for name, size in sizes.items() if size is not None},
            )
        except InsufficientData as error:
            return KeptArrays.refusal(str(error))
        depleted: Values = {}
        for encoder, features, methods in classifiers_of([random], inputs):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # said once already, when the methods were evaluated
                results = evaluate(tasks, features, methods, seed=inputs.seed, runtime=runtime)
            depleted |= {Classifier(encoder, method): values_of(results, method) for method in results.methods}
        return keep_values(depleted, uses=_uses(tasks.table))

    return inputs.reevaluated(f"depletion-{query}", [random], make)


def _uses(rows: pa.Table) -> dict[str, int]:
    """In how many tasks each class is."""
    counted: list[dict[str, Any]] = pc.value_counts(rows.column("label")).to_pylist()
    return {one["values"]: one["counts"] for one in counted}


def _halves(units: Units, sets: Sequence[Evaluated], inputs: Inputs, runtime: Runtime) -> HalvedMeans | str:
    """Evaluate all classifiers on halves of the data, or say why that cannot be."""

    def make() -> KeptArrays:
        if refusal := _on_items(sets, inputs):
            return KeptArrays.refusal(refusal)
        with_attributes = any(evaluated.origin.attributes is not None for evaluated in sets)
        inputs.require(units, "tasks", "catalogs", "features", *(["attributes"] if with_attributes else []))
        try:
            means = means_on_halves(
                _task_sets(replicates_of(sets), inputs),
                inputs.catalog(sets[0].origin.design.catalog),
                classifiers_of(sets, inputs),
                units,
                inputs=inputs,
                runtime=runtime,
            )
        except InsufficientData as error:
            return KeptArrays.refusal(str(error))
        return keep_halves(means)

    return kept_halves(inputs.reevaluated(units, sets, make))


def _shuffled(sets: Sequence[Evaluated], inputs: Inputs, runtime: Runtime) -> ShuffledTasks | None:
    """Evaluate task sets that have placebos with shuffled words; None if there are none, or something is missing."""
    replicates = replicates_of(sets)
    origins = {evaluated.label: evaluated.origin for evaluated in replicates}
    stressed = [evaluated for evaluated in replicates if evaluated.origin.placebo(origins)]

    def make() -> KeptArrays:
        try:
            shuffled = evaluate_shuffled(
                _task_sets(stressed, inputs),
                inputs.catalog(sets[0].origin.design.catalog),
                classifiers_of(sets, inputs),
                seed=inputs.seed,
                runtime=runtime,
            )
        except InsufficientData as error:
            return KeptArrays.refusal(str(error))
        return keep_shuffles(shuffled)

    if not stressed:
        return None
    if not inputs.is_kept("shuffles", sets) and (_on_items(sets, inputs) or missing_inputs(sets, inputs)):
        return None
    return kept_shuffles(inputs.reevaluated("shuffles", sets, make))


def _task_sets(sets: Sequence[Replicates], inputs: Inputs) -> list[TaskSet]:
    return [inputs.task_set(each.origin.tasks_digest, each.origin.design.catalog) for each in sets]


def classifiers_of(sets: Sequence[Evaluated], inputs: Inputs) -> Classifiers:
    """Give each encoder of the results with its features and its methods, made anew.

    Raises:
        InputError: the features are not there, or a method cannot be made anew.
    """
    digests = {encoder: digest for one in sets for encoder, digest in one.features.items()}
    return [
        (encoder, inputs.features_of(encoder, digests[encoder]), methods)
        for encoder, methods in _methods(sets, inputs).items()
    ]


def _on_items(sets: Sequence[Evaluated], inputs: Inputs) -> str | None:
    """Why methods that ask a server or adapt a network are not evaluated anew; None where there are none."""
    for one in sets:
        for classifier in one.values:
            if one.features.get(classifier.encoder, "") is not None:
                continue
            if classifier.encoder == ON_ITEMS:
                return f"method '{classifier.method}' needs the items, and is not evaluated anew on other tasks"
            if isinstance(inputs.method(classifier.method), Adaptation):
                return f"method '{classifier.method}' adapts a network, and is not evaluated anew on other tasks"
    return None


def _methods(sets: Sequence[Evaluated], inputs: Inputs) -> dict[str, list[Method]]:
    """The methods of each encoder, made anew."""
    methods: dict[str, list[Method]] = {}
    for classifier in dict.fromkeys(classifier for one in sets for classifier in one.values):
        methods.setdefault(classifier.encoder, []).append(inputs.method(classifier.method))
    return methods


def best_query(random: Evaluated, inputs: Inputs) -> int | None:
    """The number with the narrowest interval, in the middle of the classifiers'; None where results do not tell."""
    design = random.origin.design
    if design.shot is None:
        return None
    sizes = ItemPool.of(inputs.catalog(design.catalog).in_split(design.split)).sizes.tolist()
    found = []
    for given in inputs.results:
        if Origin.of(given).tasks_digest != random.origin.tasks_digest:
            continue
        for method in given.methods:
            try:
                pilot = Pilot.of(given)
                made = plan(pilot.moments(method), shot=design.shot, way=pilot.way, items=sizes)
            except ShotproofError:  # one query per class, or an accuracy that never varies: nothing to plan from
                continue
            found += [] if made.query is None else [made.query]
    return statistics.median_low(found) if found else None
