"""The accuracies of two classifiers on the same tasks, against each other (*Oops, I Sampled it Again*, Fig. 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shotproof.comparison.comparison import Comparison
from shotproof.core.arrays import FloatArray, IntArray
from shotproof.results.origin import Design
from shotproof.stats.block import Group


@dataclass(frozen=True)
class TaskScatter:
    """The two best classifiers of a task set by the comparison's metric.

    first, second: their names, the better one first
    x, y: the accuracies, in percent: [points]
    tasks: how many tasks have both: [points]
    correlation: Pearson's, over tasks; NaN where one never varies
    """

    design: Design
    group: Group
    first: str
    second: str
    x: FloatArray
    y: FloatArray
    tasks: IntArray
    correlation: float

    @property
    def r(self) -> str:
        """The correlation as text."""
        return "n/a" if np.isnan(self.correlation) else f"{self.correlation:.2f}"


def task_scatters(comparison: Comparison) -> Iterator[TaskScatter]:
    """One for every task set that two classifiers were evaluated on, but placebos."""
    metric = comparison.metric
    for block in comparison.blocks:
        for group in block.measured:
            if len(group.rows) < 2:
                continue
            best = sorted(group.rows, key=lambda row: -row.means[metric])[:2]
            names = {str(row.classifier) for row in best}
            pairs = next(of for (of_metric, _), of in group.pairs.items() if of_metric == metric)
            pair = next(one for one in pairs if {one.a, one.b} == names)
            values = np.stack([group.values[row.classifier][metric] for row in best])
            points, tasks = np.unique(values.round(9), axis=1, return_counts=True)
            first, second = (comparison.classifier_name(row.classifier) for row in best)
            yield TaskScatter(
                block.design, group, first, second, points[0], points[1], tasks, group.correlation(pair, metric)
            )
