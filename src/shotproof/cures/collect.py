"""What to collect: classes whose items mostly show a context or word, and what that costs the classifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from shotproof.core.runtime.runtime import Runtime
from shotproof.cures.cure import ToCollect
from shotproof.cures.effects import AS_IS, is_judged
from shotproof.cures.remedy import RemedyData, Treatment
from shotproof.cures.stage import Stage
from shotproof.results.origin import PLACEBO, Origin
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet

FEWEST_TASKS = 5  # tasks with a class and cue, below which its cost is too uncertain to rank by
MOST = 10


def find_missing_items(stage: Stage, data: RemedyData, runtime: Runtime | None = None) -> list[ToCollect]:
    """Rank classes and cues by what planting the cue in the supports of the class costs.

    Only cues that most items of a class show are listed: more items without them would balance it.
    """
    features = stage.features_of(Treatment(AS_IS), data.features)
    tasks = [
        task_set for task_set in stage.tasks if task_set.record.sampler_name != PLACEBO and not task_set.is_changed
    ]
    evaluated = stage.evaluate(tasks, features, [data.method], runtime)
    results = {task_set.digest: task_results for task_set, task_results in zip(tasks, evaluated, strict=True)}
    reference = next((task_set for task_set in tasks if Origin.of(results[task_set.digest]).axis is None), None)
    if reference is None:
        return []
    usual = _accuracy_by_label(reference, results[reference.digest])
    rows: dict[tuple[str, str], ToCollect] = {}
    for task_set in tasks:
        origin = Origin.of(results[task_set.digest])
        if origin.axis not in ("attributes", "contexts") or not is_judged(origin):
            continue
        cues = stage.inputs.cues_of(task_set)
        catalog = stage.inputs.catalogs[0].in_split(task_set.record.split)
        labels = catalog.table.column("label").to_pylist()
        holders = Counter(
            (label, cue) for item, label in zip(catalog.items, labels, strict=True) for cue in cues.get(item, ())
        )
        sizes = Counter(labels)
        for label, cue, accuracy, count in _accuracy_by_cue(task_set, results[task_set.digest]):
            having = holders[label, cue]
            lacking = sizes[label] - having
            cost = usual.get(label, np.nan) - accuracy
            known = rows.get((label, cue))
            if count >= FEWEST_TASKS and having > lacking and cost > 0 and (known is None or cost > known.cost):
                rows[label, cue] = ToCollect(label, cue, having, lacking, float(cost), count)
    return sorted(rows.values(), key=lambda row: (-row.cost, row.label, row.cue))[:MOST]


def _accuracy_by_label(tasks: TaskSet, results: Results) -> dict[str, float]:
    """Compute the mean accuracy on the queries of each class, in percent."""
    accuracy = results.counts(results.methods[0]).accuracy()
    labels = np.array(tasks.table.column("label").to_pylist())
    return {str(label): float(np.nanmean(accuracy[labels == label])) for label in np.unique(labels)}


def _accuracy_by_cue(tasks: TaskSet, results: Results) -> Iterator[tuple[str, str, float, int]]:
    """Yield each class and planted cue with the mean accuracy on its queries, in percent, and the number of tasks."""
    accuracy = results.counts(results.methods[0]).accuracy()
    by_cue: dict[tuple[str, str], list[float]] = {}
    pairs = zip(tasks.table.column("label").to_pylist(), tasks.table.column("attribute").to_pylist(), strict=True)
    for (label, cue), value in zip(pairs, accuracy.tolist(), strict=True):
        if cue is not None and not np.isnan(value):
            by_cue.setdefault((label, cue), []).append(value)
    for (label, cue), values in sorted(by_cue.items()):
        yield label, cue, float(np.mean(values)), len(values)
