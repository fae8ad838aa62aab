"""Why means over tasks without replacement differ from those over random tasks: large classes are in more of them.

Tasks are drawn without replacement until fewer classes than a task needs have items left. Small classes are used up
first and large ones go on, while random tasks use all classes alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shotproof.results.evaluated import Classifier, Evaluated, Metric
from shotproof.results.metrics import FloatArray
from shotproof.stats.intervals import Estimate


def note_of_open_means(
    random: Evaluated,
    depletion: Mapping[Classifier, Mapping[Metric, FloatArray]],
    class_uses: Mapping[str, int],
    level: float,
) -> str | None:
    """That Acc differs, by how much, and how much of it comes of which classes are used; None where it does not.

    Args:
        random: random tasks
        depletion: the values on tasks without replacement
        class_uses: in how many of the latter each class is
        level: at which a difference is conclusive

    Returns:
        One sentence without its period, on the mean over classifiers.
    """
    shared = [one for one in random.values if one in depletion]
    if not shared or not class_uses:
        return None
    closed, opened = (np.mean([by[one]["acc"] for one in shared], axis=0) for by in (random.values, depletion))
    difference = Estimate.over_tasks(opened).minus(Estimate.over_tasks(closed))
    if difference.p_value() > 1 - level:
        return None
    labels, row = np.unique(np.asarray(random.rows[0].column("label").to_pylist(), dtype=str), return_inverse=True)
    accuracy = np.mean([random.by_row[one] for one in shared], axis=0)
    asked = ~np.isnan(accuracy)
    used = np.bincount(row[asked], minlength=len(labels))
    means = np.bincount(row[asked], accuracy[asked], len(labels)) / np.maximum(used, 1)
    opened_uses = np.array([class_uses.get(label, 0) for label in labels.tolist()], dtype=np.float64)
    explained = float((opened_uses / opened_uses.sum() - used / used.sum()) @ means)
    most, least = (max(class_uses, key=lambda label: sign * class_uses[label]) for sign in (1, -1))
    higher = "higher" if difference.mean > 0 else "lower"
    return (
        f"depletion: Acc is {abs(difference.mean):.1f} points {higher} than on random tasks (mean over classifiers); "
        f"{explained:+.1f} points come of large classes being in more tasks ('{most}' in {class_uses[most]} of "
        f"{len(opened)}, '{least}' in {class_uses[least]})"
    )
