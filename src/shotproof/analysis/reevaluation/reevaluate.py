"""Re-evaluation for the intervals `depletion`, `images` and `classes`, design by design."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from shotproof.analysis.reevaluation.best_query import best_query
from shotproof.analysis.reevaluation.drawing import Drawing
from shotproof.analysis.reevaluation.halvings import Classifiers, means_on_halves
from shotproof.analysis.reevaluation.material import Material
from shotproof.analysis.reevaluation.shuffles import evaluate_shuffled
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.evaluate import ON_ITEMS, evaluate
from shotproof.evaluation.evaluated import Classifier, Evaluated, Metric, values_of
from shotproof.evaluation.metrics import FloatArray
from shotproof.evaluation.origin import RANDOM, Design
from shotproof.methods.adaptation.adaptation import Adaptation
from shotproof.methods.method import Method
from shotproof.stats.evidence import DEPLETION, Reevaluated, Units, by_design, replicates_of
from shotproof.stats.halves import HalvedMeans
from shotproof.stats.intervals import Covers
from shotproof.stats.shuffles import ShuffledTasks
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet

Values = dict[Classifier, dict[Metric, FloatArray]]


def reevaluate(
    sets: Sequence[Evaluated], covers: Sequence[Covers], material: Material, runtime: Runtime | None = None
) -> Mapping[Design, Reevaluated]:
    """What the intervals need beyond the results, for each design; data that is too small is a reason, not an error."""
    units = [name for name in get_args(Units) if name in covers]
    found = {}
    for design, of_design in by_design(sets).items():
        random = next((one for one in of_design if one.label == RANDOM), None)
        halves = {name: _halves(name, of_design, material, resolve(runtime)) for name in units}
        known = Reevaluated(halves=halves)
        if random and DEPLETION in covers:
            known = replace(_depleted(random, of_design, material, resolve(runtime)), halves=halves)
        shuffled = _shuffled(of_design, material, resolve(runtime))
        if halves or known.depletion is not None or shuffled:
            found[design] = replace(known, shuffled=shuffled)
    return found


def missing_material(sets: Sequence[Evaluated], material: Material) -> str | None:
    """Say what re-evaluation on halves of the data lacks; None if everything is there.

    Args:
        sets: what was evaluated
        material: what there is
    """
    if not material.features:
        return "it re-evaluates the methods, and the features are not given"
    try:
        for one in sets:
            tasks = material.task_set(one.origin.tasks_digest, one.origin.design.catalog)
            material.catalog(one.origin.design.catalog)
            Drawing.of(tasks, material)
            for encoder, digest in one.features.items():
                material.features_of(encoder, digest)
        _methods(sets, material)
    except InputError as error:
        return str(error)
    return None


def _depleted(random: Evaluated, of_design: Sequence[Evaluated], material: Material, runtime: Runtime) -> Reevaluated:
    """The classifiers of the random tasks on tasks without replacement, or why there are none.

    Where the results have such tasks, these are taken; where the material is there, tasks with the best number of
    queries are evaluated too.
    """
    refusal = _on_items([random], material)
    given = next((one for one in of_design if one.origin.sampler == DEPLETION), None)
    if given and set(random.values) <= set(given.values):
        known = Reevaluated(given.values, class_uses=_uses(given.rows[0]))
        if refusal or missing_material([random], material):
            return known
    elif refusal:
        return Reevaluated(refusal)
    else:
        material.require(DEPLETION, "catalogs", "features")
        try:
            depleted, tasks = _without_replacement(random, random.origin.design.query, material, runtime)
        except InsufficientData as error:
            return Reevaluated(str(error))
        known = Reevaluated(depleted, class_uses=_uses(tasks.table))
    best = best_query(random, material)
    if best is None:
        return known
    try:
        at_best, _ = _without_replacement(random, best, material, runtime)
    except InsufficientData:
        return known
    return replace(known, best_query=best, at_best_query=at_best)


def _without_replacement(
    random: Evaluated, query: int | None, material: Material, runtime: Runtime
) -> tuple[Values, TaskSet]:
    """The classifiers of the random tasks on all tasks without replacement that the data gives, and these."""
    design = random.origin.design
    sizes = {"way": design.way, "shot": design.shot, "query": query}
    drawn: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    skip = "skip_small_classes=True" in random.origin.spelling
    tasks = sample(
        material.catalog(design.catalog),
        f"{DEPLETION}(skip_small_classes={skip})",
        split=design.split,
        seed=material.seed,
        runtime=runtime,
        **drawn,
    )
    depleted: Values = {}
    for encoder, methods in _methods([random], material).items():
        features = material.features_of(encoder, random.features[encoder])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # said once already, when the methods were evaluated
            results = evaluate(tasks, features, methods, seed=material.seed, runtime=runtime)
        depleted |= {Classifier(encoder, method): values_of(results, method) for method in results.methods}
    return depleted, tasks


def _uses(rows: pa.Table) -> dict[str, int]:
    """In how many tasks each class is."""
    counted: list[dict[str, Any]] = pc.value_counts(rows.column("label")).to_pylist()
    return {one["values"]: one["counts"] for one in counted}


def _halves(units: Units, sets: Sequence[Evaluated], material: Material, runtime: Runtime) -> HalvedMeans | str:
    """All classifiers on halves of the data, or why there are none."""
    if refusal := _on_items(sets, material):
        return refusal
    with_attributes = any(one.origin.attributes is not None for one in sets)
    material.require(units, "tasks", "catalogs", "features", *(["attributes"] if with_attributes else []))
    try:
        return means_on_halves(
            [material.task_set(one.origin.tasks_digest, one.origin.design.catalog) for one in replicates_of(sets)],
            material.catalog(sets[0].origin.design.catalog),
            classifiers_of(sets, material),
            units,
            material=material,
            runtime=runtime,
        )
    except InsufficientData as error:
        return str(error)


def _shuffled(sets: Sequence[Evaluated], material: Material, runtime: Runtime) -> ShuffledTasks | None:
    """Evaluate task sets that have placebos with shuffled words; None if there are none, or something is missing."""
    replicates = replicates_of(sets)
    origins = {one.label: one.origin for one in replicates}
    stressed = [one for one in replicates if one.origin.placebo(origins)]
    if not stressed or _on_items(sets, material) or missing_material(sets, material):
        return None
    try:
        return evaluate_shuffled(
            [material.task_set(one.origin.tasks_digest, one.origin.design.catalog) for one in stressed],
            material.catalog(sets[0].origin.design.catalog),
            classifiers_of(sets, material),
            seed=material.seed,
            runtime=runtime,
        )
    except InsufficientData:
        return None


def classifiers_of(sets: Sequence[Evaluated], material: Material) -> Classifiers:
    """Give each encoder of the results with its features and its methods, made anew.

    Raises:
        InputError: the features are not there, or a method cannot be made anew.
    """
    digests = {encoder: digest for one in sets for encoder, digest in one.features.items()}
    return [
        (encoder, material.features_of(encoder, digests[encoder]), methods)
        for encoder, methods in _methods(sets, material).items()
    ]


def _on_items(sets: Sequence[Evaluated], material: Material) -> str | None:
    """Why methods that ask a server or adapt a network are not evaluated anew; None where there are none."""
    for one in sets:
        for classifier in one.values:
            if one.features.get(classifier.encoder, "") is not None:
                continue
            if classifier.encoder == ON_ITEMS:
                return f"method '{classifier.method}' needs the items, and is not evaluated anew on other tasks"
            if isinstance(material.method(classifier.method), Adaptation):
                return f"method '{classifier.method}' adapts a network, and is not evaluated anew on other tasks"
    return None


def _methods(sets: Sequence[Evaluated], material: Material) -> dict[str, list[Method]]:
    """The methods of each encoder, made anew."""
    methods: dict[str, list[Method]] = {}
    for classifier in dict.fromkeys(classifier for one in sets for classifier in one.values):
        methods.setdefault(classifier.encoder, []).append(material.method(classifier.method))
    return methods
