"""Re-evaluation with the words, or contexts, of each class's items shuffled, for `stats/shuffles.py`.

A sampler that looks at words and classes alone draws, if words are shuffled within classes, the same tasks with the
items of each class permuted. So task sets need not be drawn anew: their items are permuted, once for all tasks, by
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

# More tasks per shuffle would tell the variance hardly better; of many classifiers, fewer shuffles are made.
TASKS_PER_SHUFFLE = 100
SHUFFLES, FEWEST_SHUFFLES = 100, 40
MOST_EVALUATIONS = 60_000  # tasks times classifiers
_BLOCK = 25  # shuffles that are evaluated together, which share the items' inner products


@dataclass(frozen=True)
class _Work:
    """All that a worker process needs."""

    catalog: Catalog
    classifiers: RepeatedClassifiers
    task_sets: list[TaskSet]

    def block(self, shuffles: range) -> tuple[FloatArray, FloatArray]:
        """Evaluate some shuffles: [shuffles, classifiers, metrics, tasks], and [shuffles, classifiers, rows].

        The tasks, and the rows, of all task sets are one after the other.
        """
        tables = []
        for shuffle in shuffles:
            # Task sets that are matched share the permutations.
            seed = int(draws.bits(self.classifiers.seed, shuffle) >> np.uint64(1))
            for tasks in self.task_sets:
                bound = Placebo(per_task=False).bind(self.catalog, TaskShape(), seed, like=tasks)
                tables.append(bound.draw(range(len(tasks))))
        counts = self.classifiers.counts(tables)
        by_task = [[each.accuracy_by_task(), each.worst_by_task()] for each in counts]
        return _by_shuffle(by_task, len(shuffles)), _by_shuffle([each.accuracy() for each in counts], len(shuffles))


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
    """Evaluate classifiers on task sets whose words, or contexts, are shuffled within classes.

    Args:
        task_sets: of one catalog, each decided by words or contexts and classes alone
        catalog: that they were drawn from
        classifiers: each encoder's name, features and methods
        shuffles: how many; None is 100, or fewer, at least 40, of many classifiers
        tasks: how many of each set, from the first on
        seed: of the shuffles
        runtime: how it is computed; the result is the same for any

    Returns:
        The moments of the means, and the accuracies by row.

    Raises:
        InsufficientData: a class has too few sources for a shuffle.
    """
    kept = catalog.in_split(task_sets[0].record.split)
    again = RepeatedClassifiers.of(classifiers, kept.item_column, seed)
    names = again.names
    tasks = min(tasks, *map(len, task_sets))
    first_tasks = [task_set.first(tasks) for task_set in task_sets]
    per_shuffle = tasks * len(task_sets) * len(names)
    shuffles = shuffles or min(SHUFFLES, max(FEWEST_SHUFFLES, MOST_EVALUATIONS // per_shuffle))
    work = _Work(kept, again, first_tasks)
    blocks = [range(start, min(start + _BLOCK, shuffles)) for start in range(0, shuffles, _BLOCK)]
    evaluated = list(
        resolve(runtime).map(work.block, blocks, what="evaluating with shuffled words", steps=len, needs="share")
    )
    by_task, by_row = (np.concatenate(parts) for parts in zip(*evaluated, strict=True))
    # [shuffles, classifiers, metrics, sets, tasks] -> [shuffles, tasks, sets, classifiers, metrics]
    values = by_task.reshape(*by_task.shape[:3], len(task_sets), tasks).transpose(0, 4, 3, 1, 2)
    values = values.reshape(shuffles, tasks, -1)
    means: list[MeanOf] = [(one.digest, name, metric) for one in task_sets for name in names for metric in METRICS]
    ends = np.cumsum([len(one.table) for one in first_tasks])[:-1]
    return ShuffledTasks(
        ShuffledMeans.of_values(values, means),
        {mean: values[:, :, place] for place, mean in enumerate(means)},
        {
            (task_set.digest, name): rows[:, number]
            for task_set, rows in zip(task_sets, np.split(by_row, ends, axis=2), strict=True)
            for number, name in enumerate(names)
        },
    )


def _by_shuffle(values: Sequence[Any], shuffles: int) -> FloatArray:
    """Split what is of all shuffles, end to end along the last axis, into shuffles along a new first one."""
    array = np.asarray(values)
    split = array.reshape(*array.shape[:-1], shuffles, -1)
    # In one layout, as an array that comes from another process is: sums over it round alike.
    return np.ascontiguousarray(np.moveaxis(split, -2, 0))
