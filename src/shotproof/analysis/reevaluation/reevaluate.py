"""Re-evaluation for the intervals `depletion`, `images` and `classes`, design by design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from shotproof.analysis.reevaluation.drawing import Drawing
from shotproof.analysis.reevaluation.halvings import means_on_halves
from shotproof.analysis.reevaluation.material import Material
from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.evaluate import ON_ITEMS, evaluate
from shotproof.evaluation.evaluated import Classifier, Evaluated, Metric, values_of
from shotproof.evaluation.metrics import FloatArray
from shotproof.evaluation.origin import RANDOM, Design
from shotproof.methods.method import Method
from shotproof.stats.evidence import DEPLETION, Reevaluated, Units, by_design, replicates_of
from shotproof.stats.halves import HalvedMeans
from shotproof.stats.intervals import Covers
from shotproof.tasks.sampler import sample

Values = dict[Classifier, dict[Metric, FloatArray]]


def reevaluate(
    sets: Sequence[Evaluated], covers: Sequence[Covers], material: Material, runtime: Runtime | None = None
) -> Mapping[Design, Reevaluated]:
    """What the intervals need beyond the results, for each design; data that is too small is a reason, not an error."""
    units = [name for name in get_args(Units) if name in covers]
    found = {}
    for design, of_design in by_design(sets).items():
        random = next((one for one in of_design if one.label == RANDOM), None)
        depleted = _depleted(random, material, resolve(runtime)) if random and DEPLETION in covers else None
        halves = {name: _halves(name, of_design, material, resolve(runtime)) for name in units}
        if depleted is not None or halves:
            found[design] = Reevaluated(depleted, halves)
    return found


def has_material(sets: Sequence[Evaluated], material: Material) -> bool:
    """Whether the material has all that re-evaluation on halves of the data needs."""
    if not material.features:
        return False
    try:
        for one in sets:
            tasks = material.task_set(one.origin.tasks_digest, one.origin.design.catalog)
            material.catalog(one.origin.design.catalog)
            Drawing.of(tasks, material)
            for encoder, digest in one.features.items():
                material.features_of(encoder, digest)
        _methods(sets, material)
    except InputError:
        return False
    return True


def _depleted(random: Evaluated, material: Material, runtime: Runtime) -> Values | str:
    """The classifiers of the random tasks on tasks without replacement, or why there are none."""
    if refusal := _on_items([random]):
        return refusal
    material.require(DEPLETION, "catalogs", "features")
    design = random.origin.design
    drawn = {name: size for name in ("way", "shot", "query") if (size := getattr(design, name)) is not None}
    skip = "skip_small_classes=True" in random.origin.spelling
    try:
        tasks = sample(
            material.catalog(design.catalog),
            f"{DEPLETION}(skip_small_classes={skip})",
            split=design.split,
            seed=material.seed,
            runtime=runtime,
            **drawn,
        )
    except InsufficientData as error:
        return str(error)
    depleted: Values = {}
    for encoder, methods in _methods([random], material).items():
        features = material.features_of(encoder, random.features[encoder])
        results = evaluate(tasks, features, methods, seed=material.seed, runtime=runtime)
        depleted |= {Classifier(encoder, method): values_of(results, method) for method in results.methods}
    return depleted


def _halves(units: Units, sets: Sequence[Evaluated], material: Material, runtime: Runtime) -> HalvedMeans | str:
    """All classifiers on halves of the data, or why there are none."""
    if refusal := _on_items(sets):
        return refusal
    with_attributes = any(one.origin.attributes is not None for one in sets)
    material.require(units, "tasks", "catalogs", "features", *(["attributes"] if with_attributes else []))
    digests = {encoder: digest for one in sets for encoder, digest in one.features.items()}
    try:
        return means_on_halves(
            [material.task_set(one.origin.tasks_digest, one.origin.design.catalog) for one in replicates_of(sets)],
            material.catalog(sets[0].origin.design.catalog),
            [
                (encoder, material.features_of(encoder, digests[encoder]), methods)
                for encoder, methods in _methods(sets, material).items()
            ],
            units,
            material=material,
            runtime=runtime,
        )
    except InsufficientData as error:
        return str(error)


def _on_items(sets: Sequence[Evaluated]) -> str | None:
    """Why methods on items, such as those that ask a server, are not evaluated anew; None where there are none."""
    for classifier in (
        classifier for one in sets if one.features.get(ON_ITEMS, "") is None for classifier in one.values
    ):
        if classifier.encoder == ON_ITEMS:
            return f"method '{classifier.method}' needs the items, and is not evaluated anew on other tasks"
    return None


def _methods(sets: Sequence[Evaluated], material: Material) -> dict[str, list[Method]]:
    """The methods of each encoder, made anew."""
    methods: dict[str, list[Method]] = {}
    for classifier in dict.fromkeys(classifier for one in sets for classifier in one.values):
        methods.setdefault(classifier.encoder, []).append(material.method(classifier.method))
    return methods
