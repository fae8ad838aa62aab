"""Calibration: what gap do tasks read off encoders whose lean on the context is known?

The gap must be zero at share 0 and rise with the share. Every dial seed draws the codes and the noise of all items
anew, so the readings of the seeds are independent given the tasks, and an interval over seeds needs no more than that.
(An interval over tasks alone would take the luck of one draw of items for a bias.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.stats.intervals import FloatArray, Interval, sampler_interval
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.dial import DialEncoder

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Reading:
    """What one method reads at one share: worst-class accuracy on the two task sets, [seeds] each."""

    method: str
    share: float
    random: FloatArray
    biased: FloatArray

    def gap(self, level: float = 0.95) -> Interval:
        """wAcc-R - wAcc-A, with its interval over dial seeds."""
        return _over_seeds(self.random - self.biased, level)

    def rise(self, lower: Reading, level: float = 0.95) -> Interval:
        """How much larger the gap is than at a lower share, paired by seed."""
        return _over_seeds((self.random - self.biased) - (lower.random - lower.biased), level)


def calibrate(
    catalog: Catalog,
    random: TaskSet,
    biased: TaskSet,
    *,
    methods: Sequence[str] = ("ncc", "cosine"),
    shares: Sequence[float] = SHARES,
    seeds: int = 12,
) -> list[Reading]:
    """Readings of random and biased tasks on a world's catalog, by method and then by share."""
    worst = np.empty((2, len(methods), len(shares), seeds))
    for s, share in enumerate(shares):
        for seed in range(seeds):
            features = encode(catalog, DialEncoder(share=share, seed=seed), cache=False)
            for t, tasks in enumerate((random, biased)):
                results = evaluate(tasks, features, methods)
                worst[t, :, s, seed] = [results.counts(method).worst_by_task().mean() for method in methods]
    return [
        Reading(method, share, worst[0, m, s], worst[1, m, s])
        for m, method in enumerate(methods)
        for s, share in enumerate(shares)
    ]


def _over_seeds(values: FloatArray, level: float) -> Interval:
    return replace(sampler_interval(values, level), covers="dial seeds")
