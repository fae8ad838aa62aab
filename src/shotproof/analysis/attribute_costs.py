"""The attributes that cost most: how well classes do when an attribute is planted in their support set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shotproof.core.arrays import FloatArray, IntArray
from shotproof.evaluation.answers import AnsweredTasks
from shotproof.stats.intervals import Interval, sampler_interval

# Below this an interval over tasks says little.
MIN_TASKS = 10


@dataclass(frozen=True)
class AttributeCost:
    """Class accuracy in percent, mean over all classifiers, where one attribute was planted.

    lost: against the placebo, in points: the same classes of the same tasks, their items shuffled; None without one
    """

    attribute: str
    tasks: int
    labels: int
    accuracy: Interval
    lost: Interval | None = None


@dataclass(frozen=True)
class AttributeCosts:
    """The `costs` of those attributes of one task set that cost anything, the costliest first.

    overall: the class accuracy over all attributes, in percent
    planted: the number of all attributes that were planted
    """

    overall: float
    planted: int
    costs: list[AttributeCost]


def attribute_costs(
    replicates: Sequence[AnsweredTasks], placebos: Sequence[AnsweredTasks] | None = None
) -> AttributeCosts:
    """The cost of every attribute planted in at least MIN_TASKS tasks, where accuracy is lower than otherwise.

    Without placebos, otherwise is overall: an attribute of classes that are hard anyway seems to cost.

    Args:
        replicates: a task set with its answers, or several that differ in their seed alone
        placebos: of each of these, with the same tasks and classes

    Returns:
        The costs, ordered by the near end of their interval, so that none leads by a few unlucky tasks.
    """
    sham = None if placebos is None else np.concatenate([one.accuracy_by_row() for one in placebos])
    accuracy = np.concatenate([one.accuracy_by_row() for one in replicates])
    labels = np.array([label for one in replicates for label in one.tasks.table.column("label").to_pylist()], object)
    # Tasks are numbered from 0 in each replicate: here, through all of them.
    ways = np.concatenate([np.diff(one.tasks.starts) for one in replicates])
    task_of_row = np.repeat(np.arange(len(ways)), ways)
    planted = [word for one in replicates for word in one.tasks.table.column("attribute").to_pylist()]
    rows_of: dict[str, list[int]] = {}
    for row, attribute in enumerate(planted):
        if attribute is not None and not np.isnan(accuracy[row]):
            rows_of.setdefault(attribute, []).append(row)
    costs = []
    for attribute, rows in sorted(rows_of.items()):
        # One value per task: an attribute planted twice in a task is not two independent draws.
        task, position = np.unique(task_of_row[rows], return_inverse=True)
        if len(task) >= MIN_TASKS:
            by_task, lost = _mean_by_task(accuracy[rows], position), None
            if sham is not None:
                lost = sampler_interval(_mean_by_task((sham - accuracy)[rows], position))
            costs.append(AttributeCost(attribute, len(task), len(set(labels[rows])), sampler_interval(by_task), lost))
    overall = float(np.nanmean(accuracy))
    costs = [cost for cost in costs if (cost.lost.mean > 0 if cost.lost else cost.accuracy.mean < overall)]
    costs.sort(
        key=lambda cost: (-_near(cost.lost, "low") if cost.lost else _near(cost.accuracy, "high"), cost.attribute)
    )
    return AttributeCosts(overall, len(rows_of), costs)


def _near(interval: Interval, end: Literal["low", "high"]) -> float:
    """An end of an interval; of one that is refused, since all tasks have the same value, that value."""
    return interval.mean if interval.refused else float(getattr(interval, end))


def _mean_by_task(values: FloatArray, position: IntArray) -> FloatArray:
    mean: FloatArray = np.bincount(position, weights=values) / np.bincount(position)
    return mean
