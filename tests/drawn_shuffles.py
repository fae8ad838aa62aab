"""Shuffles of drawn results, for comparisons of results that no features were evaluated for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shotproof.results.evaluated import METRICS, Evaluated
from shotproof.results.origin import PLACEBO, Design
from shotproof.stats.evidence import Reevaluated
from shotproof.stats.shuffles import ShuffledMeans, ShuffledTasks

SHUFFLES = 60


def drawn_shuffles(sets: Sequence[Evaluated], seed: int = 0) -> dict[Design, Reevaluated]:
    """Shuffles in which tasks have nothing in common: the values of each placebo, in another order each time."""
    generator = np.random.default_rng(seed)
    reevaluated = {}
    for design in dict.fromkeys(task_set.origin.design for task_set in sets):
        names, columns = [], []
        for placebo in (
            task_set for task_set in sets if task_set.origin.design == design and task_set.origin.sampler == PLACEBO
        ):
            order = np.stack([generator.permutation(placebo.tasks) for _ in range(SHUFFLES)])
            for classifier, values in placebo.values.items():
                names += [(placebo.origin.like, classifier, metric) for metric in METRICS]
                columns += [values[metric][order] for metric in METRICS]
        if names:
            means = ShuffledMeans.of_values(np.stack(columns, axis=2), names)
            reevaluated[design] = Reevaluated(shuffled=ShuffledTasks(means, {}, {}))
    return reevaluated
