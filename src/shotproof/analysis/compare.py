"""Classifiers side by side: intervals that name what they cover, ranks with ties, all pairs, gaps.

comparison = compare(results)
comparison = compare(material, intervals=("sampler", "images"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from shotproof.analysis.detection import detection_accuracies
from shotproof.analysis.reevaluation.material import Material
from shotproof.analysis.reevaluation.reevaluate import reevaluate
from shotproof.core.errors import InputError, UnknownName
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluated import METRICS, Evaluated, evaluated_sets
from shotproof.evaluation.results import Results
from shotproof.stats.compare_sets import compare_sets
from shotproof.stats.comparison import Comparison
from shotproof.stats.evidence import DEPLETION
from shotproof.stats.intervals import Covers, check_level


def compare(
    results: Results | Sequence[Results] | Material,
    *,
    intervals: str | Sequence[str] | None = None,
    level: float = 0.95,
    metric: str = "acc",
    correct: bool = True,
    material: Material | None = None,
    runtime: Runtime | None = None,
) -> Comparison:
    """Compare classifiers on the same tasks, of any number of data sets, designs and samplers.

    Results on random (or iid) tasks and on others of the same design, or on matched task sets, give the gap too, task
    by task where they are matched. Task sets that differ in their seed alone are replicates: their tasks are taken
    together, and the spread over seeds stands beside the interval. Task sets that differ in their attributes stand side
    by side, with Spearman's correlation between them.

    Args:
        results: what was evaluated, or all that was read from a run's folder
        intervals: what they cover: `sampler` (the default; on tasks without replacement with `depletion`), and
            `depletion`, `images`, `classes`, which re-evaluate and need the material
        level: of the intervals
        metric: what ranks are by, `acc` or `wacc`
        correct: by Holm for the number of pairs, within a metric and an interval
        material: the task sets, catalogs, features and attributes, for intervals other than `sampler`; by default the
            results' own where these are of a run's folder
        runtime: how to re-evaluate

    Returns:
        The comparison; `.to_pandas()`, `.to_latex()`, `.to_html()`, `.to_json()` and `.plot()` export it.

    Raises:
        Mismatch: results that claim the same tasks are not on the same tasks.
        InputError: an interval or metric is unknown, or the material that an interval needs is not there.

    Example:
        >>> import numpy as np
        >>> import shotproof as sp
        >>> catalog = sp.ShapesWorld(classes=6, items=30).catalog()
        >>> values = np.random.default_rng(0).normal(size=(len(catalog), 8))
        >>> features = sp.Features.from_array(list(catalog.items), values)
        >>> tasks = sp.sample(catalog, "random", tasks=50)
        >>> comparison = sp.compare(sp.evaluate(tasks, features, ["ncc", "knn"]))
        >>> [(row.classifier.method, row.rank("acc")) for row in comparison.groups[0].rows]
        [('ncc', 1), ('knn', 1)]
    """
    check_level(level)
    by = next((known for known in METRICS if known == metric), None)
    if by is None:
        raise UnknownName("metric", metric, METRICS)
    if isinstance(results, Material):
        material, results = material or results, results.results
    material = material or Material()
    sets = evaluated_sets([results] if isinstance(results, Results) else results)
    covers = _chosen([intervals] if isinstance(intervals, str) else intervals, sets)
    return compare_sets(
        sets,
        covers,
        level=level,
        metric=by,
        correct=correct,
        reevaluated=reevaluate(sets, covers, material, runtime),
        detection=detection_accuracies(sets, material),
    )


def _chosen(intervals: Sequence[str] | None, sets: Sequence[Evaluated]) -> tuple[Covers, ...]:
    """The intervals, each once, in the order given."""
    if intervals is None:
        of_depletion = any(one.origin.sampler == DEPLETION for one in sets)
        return ("sampler", DEPLETION) if of_depletion else ("sampler",)
    known = get_args(Covers)
    if not intervals:
        raise InputError(f"no interval: name at least one of {', '.join(known)}")
    for name in intervals:
        if name not in known:
            raise UnknownName("interval", name, known)
    return tuple(dict.fromkeys(intervals))  # type: ignore[arg-type]
