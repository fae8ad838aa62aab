"""Comparison of classifiers: named intervals, rank ranges, all pairs, and gaps.

comparison = compare(results)
comparison = compare(inputs, intervals=("sampler", "images"))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from shotproof.analysis.attribute_costs import costs_of
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.placebo_sets import WithPlacebos, with_placebos
from shotproof.analysis.pretraining import notes_of_pretraining
from shotproof.analysis.reevaluation.reevaluate import are_cached, missing_inputs, reevaluate
from shotproof.attributes.statistics import detection_accuracy
from shotproof.comparison.compare_sets import Detection, compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.results.evaluated import Evaluated, check_metric, evaluated_sets
from shotproof.results.origin import Design
from shotproof.results.results import Results
from shotproof.stats.evidence import DEPLETION, by_design
from shotproof.stats.intervals import IntervalName, check_intervals, check_level


def compare(
    results: Results | Sequence[Results] | Inputs,
    *,
    intervals: str | Sequence[str] | None = None,
    level: float = 0.95,
    metric: str = "acc",
    correct: bool = True,
    placebo: bool = True,
    inputs: Inputs | None = None,
    runtime: Runtime | None = None,
) -> Comparison:
    """Compare classifiers on the same tasks, for any number of data sets, designs and samplers.

    Every task set has a reference: random tasks, iid tasks for contexts, or the set it was drawn to match. If the
    reference is available, the comparison has the gap from it (task by task if both sets are matched), the gap beyond
    that of a placebo, and the share of skill lost. Task sets that differ only in their seed are replicates: their
    tasks are pooled, and the spread over seeds is shown beside the interval. Task sets that differ in their attributes
    are shown side by side, with Spearman's correlation between them.

    Args:
        results: the results, or everything read from a run's folder
        intervals: names of the intervals: `sampler`, and `depletion`, `images`, `classes`, which re-evaluate the
            classifiers and need the inputs. Default: `images` if the inputs are available, and `sampler`. Statements
            and tables use the first interval that can be computed
        level: confidence level of the intervals
        metric: metric that ranks the classifiers, `acc` or `wacc`
        correct: whether to apply Holm's correction for the number of pairs, within a metric and an interval
        placebo: whether to draw and evaluate the placebo of each task set built from attributes or contexts, if the
            results lack it and the inputs are available
        inputs: task sets, catalogs, features and attributes, for intervals other than `sampler`. Default: those of
            `results`, if it is a run's folder
        runtime: runtime for re-evaluation

    Returns:
        The comparison; `.to_pandas()`, `.to_latex()`, `.to_html()`, `.to_json()` and `.plot()` export it.

    Raises:
        Mismatch: results that claim the same tasks are not on the same tasks.
        InputError: an interval or metric is unknown, or the inputs that an interval needs are missing.

    Example:
        >>> import numpy as np
        >>> import shotproof as sp
        >>> catalog = sp.worlds.ShapesWorld(classes=6, items=30).catalog()
        >>> values = np.random.default_rng(0).normal(size=(len(catalog), 8))
        >>> features = sp.Features.from_array(list(catalog.items), values)
        >>> tasks = sp.sample(catalog, "random", tasks=50)
        >>> comparison = sp.compare(sp.evaluate(tasks, features, ["ncc", "knn"]))
        >>> [(row.classifier.method, str(row.rank("acc"))) for row in comparison.groups[0].rows]
        [('ncc', '1 to 2 of 2'), ('knn', '1 to 2 of 2')]
    """
    check_level(level)
    ranking_metric = check_metric(metric)
    if isinstance(results, Inputs):
        inputs, results = inputs or results, results.results
    requested_intervals: tuple[IntervalName, ...] = ()
    if intervals is not None:
        requested_intervals = tuple(
            dict.fromkeys(check_intervals([intervals] if isinstance(intervals, str) else intervals))
        )
    results_list = [results] if isinstance(results, Results) else results
    prepared = WithPlacebos(replace(inputs or Inputs(), results=results_list), [])
    if placebo:
        prepared = with_placebos(prepared.inputs, runtime)
    inputs = prepared.inputs
    sets = evaluated_sets(inputs.results)
    missing = None if requested_intervals or are_cached(sets, inputs) else missing_inputs(sets, inputs)
    interval_names = requested_intervals or _default_intervals(sets, missing)
    interval_notes = [] if missing is None else [f"The images interval is not available: {missing}"]
    reevaluated = reevaluate(sets, interval_names, inputs, runtime)
    comparison = compare_sets(
        sets,
        interval_names,
        level=level,
        metric=ranking_metric,
        correct=correct,
        reevaluated=reevaluated,
        detection=detection_accuracies(sets, inputs),
    )
    return replace(
        comparison,
        notes=[*comparison.notes, *notes_of_pretraining(inputs.results), *prepared.notes, *interval_notes],
        costs=costs_of(comparison, inputs, reevaluated),
    )


def _default_intervals(sets: Sequence[Evaluated], missing: str | None) -> tuple[IntervalName, ...]:
    """Return the default intervals, the one that covers the most sources of variation first."""
    interval_names: list[IntervalName] = ["images", "sampler"] if missing is None else ["sampler"]
    if any(evaluated.origin.sampler == DEPLETION for evaluated in sets):
        interval_names.append(DEPLETION)
    return tuple(interval_names)


def detection_accuracies(sets: Sequence[Evaluated], inputs: Inputs) -> dict[Design, Detection]:
    """Compute detection accuracies between all pairs of attributes that tasks of one design were drawn with.

    Attributes that the inputs lack are skipped. Accuracies are over the items of the tasks' split if the inputs have
    the catalog, otherwise over all items.
    """
    accuracies: dict[Design, Detection] = {}
    for design, design_sets in by_design(sets).items():
        digests = {evaluated.origin.attributes for evaluated in design_sets}
        catalog = next((candidate for candidate in inputs.catalogs if candidate.digest == design.catalog), None)
        items = None if catalog is None else catalog.in_split(design.split).items
        by_digest = {attributes.digest: attributes for attributes in inputs.attributes if attributes.digest in digests}
        by_pair: dict[tuple[str, str], tuple[float, float]] = {}
        for a, b in combinations(by_digest, 2):
            try:
                a_given_b, b_given_a = (
                    detection_accuracy(by_digest[x], by_digest[y], items).accuracy for x, y in ((a, b), (b, a))
                )
            except InsufficientData:
                continue
            by_pair |= {(a, b): (a_given_b, b_given_a), (b, a): (b_given_a, a_given_b)}
        accuracies[design] = by_pair
    return accuracies
