"""Tasks to look at, chosen by rule and not by eye: evenly spaced from the hardest to the easiest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shotproof.core.arrays import FloatArray, IntArray
from shotproof.evaluation.answers import AnsweredTasks


@dataclass(frozen=True)
class ChosenTask:
    """A task of an answered set.

    position: its place in the set
    rank: its place from the hardest (1) to the easiest
    accuracy: mean over all classifiers and classes, in percent
    """

    answered: AnsweredTasks
    position: int
    rank: int
    accuracy: float

    @property
    def rows(self) -> range:
        """Its rows in the task set."""
        starts = self.answered.tasks.starts
        return range(int(starts[self.position]), int(starts[self.position + 1]))


def hardest_first(accuracy: FloatArray) -> IntArray:
    """The places of tasks by rising accuracy; equally hard tasks are in the order of the file."""
    order: IntArray = np.argsort(accuracy.round(9), kind="stable")  # equal means may differ by rounding
    return order


def choose_tasks(answered: AnsweredTasks, count: int) -> list[ChosenTask]:
    """At most `count` tasks, evenly spaced from the hardest to the easiest; for one, the median.

    A task is as hard as its mean accuracy over all classifiers; equally hard tasks are in the order of the file.
    """
    accuracy = answered.accuracy_by_task()
    order = hardest_first(accuracy)
    count = min(count, len(order))
    spaced = [0.5] if count == 1 else np.linspace(0, 1, count)
    ranks = [round(float(place) * (len(order) - 1)) for place in spaced]
    return [ChosenTask(answered, int(order[rank]), rank + 1, float(accuracy[order[rank]])) for rank in ranks]
