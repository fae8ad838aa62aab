"""The attributes that cost most: how well classes do when an attribute is planted in their support set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shotproof.report.answers import Answers
from shotproof.stats.intervals import Interval, sampler_interval
from shotproof.tasks.taskset import TaskSet

# Below this an interval over tasks says little.
MIN_TASKS = 10


@dataclass(frozen=True)
class AttributeCost:
    """Class accuracy (a share, mean over all classifiers) where one attribute was planted."""

    attribute: str
    tasks: int
    labels: int
    accuracy: Interval


@dataclass(frozen=True)
class AttributeCosts:
    """The `costs` of those attributes of one task set that cost anything, the costliest first.

    `overall` is the class accuracy whatever is planted, `planted` the number of all attributes.
    """

    overall: float
    planted: int
    costs: list[AttributeCost]


def attribute_costs(tasks: TaskSet, answers: Sequence[Answers]) -> AttributeCosts:
    """The cost of every attribute planted in at least MIN_TASKS tasks, where accuracy is lower than overall.

    They are ordered by the upper end of their interval, so that none leads by a few unlucky tasks.
    """
    share = np.mean([one.share for one in answers], axis=0)
    labels = np.asarray(tasks.table.column("label").to_pylist(), dtype=object)
    rows_of: dict[str, list[int]] = {}
    for row, attribute in enumerate(tasks.table.column("attribute").to_pylist()):
        if attribute is not None and not np.isnan(share[row]):
            rows_of.setdefault(attribute, []).append(row)
    costs = []
    for attribute, rows in sorted(rows_of.items()):
        # One value a task: an attribute planted twice in a task is not two independent draws.
        task, position = np.unique(tasks.task_of_row[rows], return_inverse=True)
        if len(task) >= MIN_TASKS:
            by_task = np.bincount(position, weights=share[rows]) / np.bincount(position)
            costs.append(AttributeCost(attribute, len(task), len(set(labels[rows])), sampler_interval(by_task)))
    overall = float(np.nanmean(share))
    costs = [cost for cost in costs if cost.accuracy.mean < overall]
    costs.sort(key=lambda cost: (cost.accuracy.high, cost.attribute))
    return AttributeCosts(overall, len(rows_of), costs)
