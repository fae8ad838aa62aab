"""Classifiers side by side: intervals that name what they cover, ranks as ranges, all pairs, gaps.

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
from shotproof.analysis.reevaluation.reevaluate import are_kept, missing_inputs, reevaluate
from shotproof.attributes.statistics import detection_accuracy
from shotproof.comparison.compare_sets import Detection, compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import InsufficientData
from shotproof.core.runtime.runtime import Runtime
from shotproof.results.evaluated import Evaluated, check_metric, evaluated_sets
from shotproof.results.origin import Design
from shotproof.results.results import Results
from shotproof.stats.evidence import DEPLETION, by_design
from shotproof.stats.intervals import Covers, check_intervals, check_level


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
    """Compare classifiers on the same tasks, of any number of data sets, designs and samplers.

    Every task set has a reference: random tasks, for contexts the iid ones, or the set that it is like. Where that is
    there, the comparison has the gap from it (task by task where both are matched), the gap beyond that of a placebo,
    and the share of the skill that is lost. Task sets that differ in their seed alone are replicates: their tasks are
    taken together, and the spread over seeds stands beside the interval. Task sets that differ in their attributes
    stand side by side, with Spearman's correlation between them.

    Args:
        results: what was evaluated, or all that was read from a run's folder
        intervals: what they cover: `sampler`, and `depletion`, `images`, `classes`, which re-evaluate and need the
            inputs; by default `images` where the inputs is there, and `sampler`. Statements and tables are by the
            first that can be given
        level: of the intervals
        metric: what ranks are by, `acc` or `wacc`
        correct: by Holm for the number of pairs, within a metric and an interval
        placebo: draw and evaluate the placebo of each task set that attributes or contexts decide, where the results
            lack it and the inputs is there
        inputs: the task sets, catalogs, features and attributes, for intervals other than `sampler`; by default the
            results' own where these are of a run's folder
        runtime: how to re-evaluate

    Returns:
        The comparison; `.to_pandas()`, `.to_latex()`, `.to_html()`, `.to_json()` and `.plot()` export it.

    Raises:
        Mismatch: results that claim the same tasks are not on the same tasks.
        InputError: an interval or metric is unknown, or the inputs that an interval needs is not there.

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
    by = check_metric(metric)
    if isinstance(results, Inputs):
        inputs, results = inputs or results, results.results
    asked: tuple[Covers, ...] = ()
    if intervals is not None:
        asked = tuple(dict.fromkeys(check_intervals([intervals] if isinstance(intervals, str) else intervals)))
    given = [results] if isinstance(results, Results) else results
    prepared = WithPlacebos(replace(inputs or Inputs(), results=given), [])
    if placebo:
        prepared = with_placebos(prepared.inputs, runtime)
    inputs = prepared.inputs
    sets = evaluated_sets(inputs.results)
    missing = None if asked or are_kept(sets, inputs) else missing_inputs(sets, inputs)
    covers = asked or _usual(sets, missing)
    unusual = [] if missing is None else [f"no images interval: {missing}"]
    reevaluated = reevaluate(sets, covers, inputs, runtime)
    comparison = compare_sets(
        sets,
        covers,
        level=level,
        metric=by,
        correct=correct,
        reevaluated=reevaluated,
        detection=detection_accuracies(sets, inputs),
    )
    return replace(
        comparison,
        notes=[*comparison.notes, *notes_of_pretraining(inputs.results), *prepared.notes, *unusual],
        costs=costs_of(comparison, inputs, reevaluated),
    )


def _usual(sets: Sequence[Evaluated], missing: str | None) -> tuple[Covers, ...]:
    """The intervals where none are asked for: what covers most of what a statement is about comes first."""
    covers: list[Covers] = ["images", "sampler"] if missing is None else ["sampler"]
    if any(one.origin.sampler == DEPLETION for one in sets):
        covers.append(DEPLETION)
    return tuple(covers)


def detection_accuracies(sets: Sequence[Evaluated], inputs: Inputs) -> dict[Design, Detection]:
    """Of all pairs of attributes that tasks of one design were drawn with, where the inputs has them.

    They are of the items of the tasks' split where the inputs has the catalog, else of all.
    """
    accuracies: dict[Design, Detection] = {}
    for design, of_design in by_design(sets).items():
        digests = {one.origin.attributes for one in of_design}
        catalog = next((one for one in inputs.catalogs if one.digest == design.catalog), None)
        items = None if catalog is None else catalog.in_split(design.split).items
        given = {one.digest: one for one in inputs.attributes if one.digest in digests}
        found: dict[tuple[str, str], tuple[float, float]] = {}
        for a, b in combinations(given, 2):
            try:
                first, second = (detection_accuracy(given[x], given[y], items).accuracy for x, y in ((a, b), (b, a)))
            except InsufficientData:
                continue
            found |= {(a, b): (first, second), (b, a): (second, first)}
        accuracies[design] = found
    return accuracies
