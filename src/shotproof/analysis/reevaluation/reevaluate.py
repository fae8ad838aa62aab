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
    restore_halves,
    restore_shuffles,
    restore_values,
)
from shotproof.analysis.reevaluation.repeated import Classifiers
from shotproof.analysis.reevaluation.shuffled_words import evaluate_shuffled
from shotproof.core.errors import InputError, InsufficientData, ShotproofError
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.backends import ON_ITEMS
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.adaptation.adaptation import Adaptation
from shotproof.learners.method import Method
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import plan
from shotproof.results.evaluated import Classifier, Evaluated, values_of
from shotproof.results.origin import Design, Origin
from shotproof.stats.evidence import DEPLETION, Reevaluated, Replicates, Units, by_design, replicates_of
from shotproof.stats.halves import HalvedMeans
from shotproof.stats.intervals import IntervalName
from shotproof.stats.shuffles import ShuffledTasks
from shotproof.tasks.pool import ItemPool
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet


def reevaluate(
    sets: Sequence[Evaluated], interval_names: Sequence[IntervalName], inputs: Inputs, runtime: Runtime | None = None
) -> Mapping[Design, Reevaluated]:
    """Compute what intervals need beyond the results, by design; for too little data, store the reason."""
    runtime = resolve(runtime)
    reevaluated = {}
    for design, design_sets in by_design(sets).items():
        design_reevaluated = Reevaluated()
        random = next((evaluated for evaluated in design_sets if evaluated.origin.is_random), None)
        if random and DEPLETION in interval_names:
            design_reevaluated = _evaluate_depletion(random, design_sets, inputs, runtime)
        units = [name for name in get_args(Units) if name in interval_names]
        design_reevaluated = replace(
            design_reevaluated,
            halves={name: _evaluate_halves(name, design_sets, inputs, runtime) for name in units},
            shuffled=_evaluate_shuffles(design_sets, inputs, runtime),
        )
        if design_reevaluated != Reevaluated():
            reevaluated[design] = design_reevaluated
    return reevaluated


def are_cached(sets: Sequence[Evaluated], inputs: Inputs) -> bool:
    """Return whether re-evaluations on halves of the images are cached for every design."""
    return all(inputs.is_cached("images", design_sets) for design_sets in by_design(sets).values())


def missing_inputs(sets: Sequence[Evaluated], inputs: Inputs) -> str | None:
    """Return what re-evaluation on halves of the data lacks; None if all inputs are available.

    Args:
        sets: evaluated task sets
        inputs: available inputs
    """
    if not inputs.features:
        return "the features, which re-evaluation needs, were not given"
    try:
        for evaluated in sets:
            tasks = inputs.task_set(evaluated.origin.tasks_digest, evaluated.origin.design.catalog)
            inputs.catalog(evaluated.origin.design.catalog)
            Drawing.of(tasks, inputs)
            for encoder, digest in evaluated.features.items():
                inputs.features_of(encoder, digest)
        _methods_by_encoder(sets, inputs)
    except InputError as error:
        return str(error)
    return None


def _evaluate_depletion(
    random: Evaluated, design_sets: Sequence[Evaluated], inputs: Inputs, runtime: Runtime
) -> Reevaluated:
    """Evaluate the classifiers of the random tasks on tasks drawn without replacement, or give the reason why not.

    Such tasks in the results are used as they are; if the inputs are available, tasks with the best number of queries
    are evaluated too.
    """
    depletion_set = next((evaluated for evaluated in design_sets if evaluated.origin.sampler == DEPLETION), None)
    if depletion_set and set(random.values) <= set(depletion_set.values):
        reevaluated = Reevaluated(depletion_set.values, class_uses=_count_class_uses(depletion_set.rows[0]))
        if _reason_not_reevaluated([random], inputs) or missing_inputs([random], inputs):
            return reevaluated
    else:
        arrays = _evaluate_without_replacement(random, random.origin.design.query, inputs, runtime)
        if arrays.record.refused is not None:
            return Reevaluated(arrays.record.refused)
        reevaluated = Reevaluated(restore_values(arrays), class_uses=arrays.facts["uses"])
    best = best_query(random, inputs)
    if best is None:
        return reevaluated
    arrays = _evaluate_without_replacement(random, best, inputs, runtime)
    return (
        reevaluated
        if arrays.record.refused
        else replace(reevaluated, best_query=best, at_best_query=restore_values(arrays))
    )


def _evaluate_without_replacement(random: Evaluated, query: int | None, inputs: Inputs, runtime: Runtime) -> KeptArrays:
    """Evaluate the classifiers of the random tasks on all tasks without replacement that the data allows."""

    def make() -> KeptArrays:
        if reason := _reason_not_reevaluated([random], inputs):
            return KeptArrays.refusal(reason)
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
                warnings.simplefilter("ignore", RuntimeWarning)  # already shown when the methods were evaluated
                results = evaluate(tasks, features, methods, seed=inputs.seed, runtime=runtime)
            depleted |= {Classifier(encoder, method): values_of(results, method) for method in results.methods}
        return keep_values(depleted, uses=_count_class_uses(tasks.table))

    return inputs.cached_reevaluation(f"depletion-{query}", [random], make)


def _count_class_uses(rows: pa.Table) -> dict[str, int]:
    """Count the tasks that contain each class."""
    label_counts: list[dict[str, Any]] = pc.value_counts(rows.column("label")).to_pylist()
    return {entry["values"]: entry["counts"] for entry in label_counts}


def _evaluate_halves(units: Units, sets: Sequence[Evaluated], inputs: Inputs, runtime: Runtime) -> HalvedMeans | str:
    """Evaluate all classifiers on halves of the data, or return the reason why not."""

    def make() -> KeptArrays:
        if reason := _reason_not_reevaluated(sets, inputs):
            return KeptArrays.refusal(reason)
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

    return restore_halves(inputs.cached_reevaluation(units, sets, make))


def _evaluate_shuffles(sets: Sequence[Evaluated], inputs: Inputs, runtime: Runtime) -> ShuffledTasks | None:
    """Evaluate task sets that have placebos with shuffled words; None if there are none or an input is missing."""
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
    if not inputs.is_cached("shuffles", sets) and (
        _reason_not_reevaluated(sets, inputs) or missing_inputs(sets, inputs)
    ):
        return None
    return restore_shuffles(inputs.cached_reevaluation("shuffles", sets, make))


def _task_sets(sets: Sequence[Replicates], inputs: Inputs) -> list[TaskSet]:
    """Return the task sets of replicates."""
    return [inputs.task_set(replicates.origin.tasks_digest, replicates.origin.design.catalog) for replicates in sets]


def classifiers_of(sets: Sequence[Evaluated], inputs: Inputs) -> Classifiers:
    """Rebuild the classifiers of the results: each encoder with its features and its methods.

    Raises:
        InputError: the features are missing, or a method cannot be rebuilt.
    """
    digests = dict.fromkeys(pair for evaluated in sets for pair in evaluated.features.items())
    features: dict[str, Features] = {}
    for encoder, digest in digests:
        candidate = inputs.features_of(encoder, digest)
        # Results on changed items are on features that have those of the unchanged ones too.
        if encoder not in features or len(candidate) > len(features[encoder]):
            features[encoder] = candidate
    return [(encoder, features[encoder], methods) for encoder, methods in _methods_by_encoder(sets, inputs).items()]


def _reason_not_reevaluated(sets: Sequence[Evaluated], inputs: Inputs) -> str | None:
    """Return why methods that query a server or adapt a network are not re-evaluated; None if there are none."""
    for evaluated in sets:
        for classifier in evaluated.values:
            if evaluated.features.get(classifier.encoder, "") is not None:
                continue
            if classifier.encoder == ON_ITEMS:
                return f"method '{classifier.method}' works on the items and is not re-evaluated on other tasks"
            if isinstance(inputs.method(classifier.method), Adaptation):
                return f"method '{classifier.method}' adapts a network and is not re-evaluated on other tasks"
    return None


def _methods_by_encoder(sets: Sequence[Evaluated], inputs: Inputs) -> dict[str, list[Method]]:
    """Rebuild the methods of each encoder."""
    methods: dict[str, list[Method]] = {}
    for classifier in dict.fromkeys(classifier for evaluated in sets for classifier in evaluated.values):
        methods.setdefault(classifier.encoder, []).append(inputs.method(classifier.method))
    return methods


def best_query(random: Evaluated, inputs: Inputs) -> int | None:
    """Return the number of queries with the narrowest interval, as a median over classifiers; None if undetermined."""
    design = random.origin.design
    if design.shot is None:
        return None
    sizes = ItemPool.of(inputs.catalog(design.catalog).in_split(design.split)).sizes.tolist()
    best_queries = []
    for results in inputs.results:
        if Origin.of(results).tasks_digest != random.origin.tasks_digest:
            continue
        for method in results.methods:
            try:
                pilot = Pilot.of(results)
                query_plan = plan(pilot.moments(method), shot=design.shot, way=pilot.way, items=sizes)
            except ShotproofError:  # one query per class or constant accuracy: no basis for a plan
                continue
            best_queries += [] if query_plan.query is None else [query_plan.query]
    return statistics.median_low(best_queries) if best_queries else None
