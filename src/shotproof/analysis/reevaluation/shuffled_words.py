"""Re-evaluation with the words or contexts of each class's items shuffled, for `stats/shuffles.py`.

If words are shuffled within classes, a sampler that looks only at words and classes draws the same tasks with the
items of each class permuted. So task sets need not be drawn again: their items are permuted, once for all tasks, by
`placebo(per_task=False)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shotproof.analysis.reevaluation.repeated import Classifiers, RepeatedClassifiers
from shotproof.catalog.catalog import Catalog
from shotproof.core import draws
from shotproof.core.arrays import FloatArray
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.results.evaluated import METRICS
from shotproof.stats.evidence import MeanOf
from shotproof.stats.shuffles import ShuffledMeans, ShuffledTasks
from shotproof.tasks.taskset import TaskSet, TaskShape
from shotproof.tasks.uniform.placebo import Placebo

# More tasks per shuffle would hardly improve the variance estimate; many classifiers get fewer shuffles.
TASKS_PER_SHUFFLE = 100
SHUFFLES, FEWEST_SHUFFLES = 100, 40
MOST_EVALUATIONS = 60_000  # tasks times classifiers
_BLOCK = 25  # shuffles evaluated together, sharing the items' inner products


@dataclass(frozen=True)
class _Work:
    """Work shared by worker processes."""

    catalog: Catalog
    classifiers: RepeatedClassifiers
    task_sets: list[TaskSet]

    def block(self, shuffles: range) -> tuple[FloatArray, FloatArray]:
        """Evaluate some shuffles: [shuffles, classifiers, metrics, tasks], and [shuffles, classifiers, rows].

        The tasks, and the rows, of all task sets are concatenated.
        """
        tables = []
        for shuffle in shuffles:
            # Matched task sets share the permutations.
            seed = int(draws.bits(self.classifiers.seed, shuffle) >> np.uint64(1))
            for tasks in self.task_sets:
                bound = Placebo(per_task=False).bind(self.catalog, TaskShape(), seed, like=tasks)
                tables.append(bound.draw(range(len(tasks))))
        counts = self.classifiers.counts(tables)
        by_task = [
            [classifier_counts.accuracy_by_task(), classifier_counts.worst_by_task()] for classifier_counts in counts
        ]
        return _by_shuffle(by_task, len(shuffles)), _by_shuffle(
            [classifier_counts.accuracy() for classifier_counts in counts], len(shuffles)
        )


def evaluate_shuffled(
    task_sets: Sequence[TaskSet],
    catalog: Catalog,
    classifiers: Classifiers,
    *,
    shuffles: int | None = None,
    tasks: int = TASKS_PER_SHUFFLE,
    seed: int = 0,
    runtime: Runtime | None = None,
) -> ShuffledTasks:
    """Evaluate classifiers on task sets whose words or contexts are shuffled within classes.

    Args:
        task_sets: task sets of one catalog, each drawn by words or contexts and classes only
        catalog: the catalog they were drawn from
        classifiers: name, features and methods of each encoder
        shuffles: number of shuffles; None means 100, or fewer for many classifiers, at least 40
        tasks: number of tasks of each set, from the first
        seed: seed of the shuffles
        runtime: runtime for the evaluation; the result does not depend on it

    Returns:
        The moments of the means, and the accuracies by row.

    Raises:
        InsufficientData: a class has too few sources for a shuffle.
    """
    split_catalog = catalog.in_split(task_sets[0].record.split)
    repeated_classifiers = RepeatedClassifiers.of(classifiers, split_catalog.item_column, seed)
    names = repeated_classifiers.names
    tasks = min(tasks, *map(len, task_sets))
    first_tasks = [task_set.first(tasks) for task_set in task_sets]
    per_shuffle = tasks * len(task_sets) * len(names)
    shuffles = shuffles or min(SHUFFLES, max(FEWEST_SHUFFLES, MOST_EVALUATIONS // per_shuffle))
    work = _Work(split_catalog, repeated_classifiers, first_tasks)
    blocks = [range(start, min(start + _BLOCK, shuffles)) for start in range(0, shuffles, _BLOCK)]
    evaluated = list(
        resolve(runtime).map(work.block, blocks, title="evaluating with shuffled words", steps=len, needs="share")
    )
    by_task, by_row = (np.concatenate(parts) for parts in zip(*evaluated, strict=True))
    # [shuffles, classifiers, metrics, sets, tasks] -> [shuffles, tasks, sets, classifiers, metrics]
    values = by_task.reshape(*by_task.shape[:3], len(task_sets), tasks).transpose(0, 4, 3, 1, 2)
    values = values.reshape(shuffles, tasks, -1)
    means: list[MeanOf] = [
        (task_set.digest, name, metric) for task_set in task_sets for name in names for metric in METRICS
    ]
    ends = np.cumsum([len(task_set.table) for task_set in first_tasks])[:-1]
    return ShuffledTasks(
        ShuffledMeans.of_values(values, means),
        {mean: values[:, :, column] for column, mean in enumerate(means)},
        {
            (task_set.digest, name): rows[:, index]
            for task_set, rows in zip(task_sets, np.split(by_row, ends, axis=2), strict=True)
            for index, name in enumerate(names)
        },
    )


def _by_shuffle(values: Sequence[Any], shuffles: int) -> FloatArray:
    """Split values of all shuffles, concatenated along the last axis, into shuffles along a new first axis."""
    array = np.asarray(values)
    split = array.reshape(*array.shape[:-1], shuffles, -1)
    # Contiguous, like an array from another process, so that sums round the same way.
    return np.ascontiguousarray(np.moveaxis(split, -2, 0))
