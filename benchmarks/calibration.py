"""Is the measurement right? What gap do tasks measure on encoders that rely on the context to a known share?

The gap must be zero at share 0 and rise with the share. Every dial seed draws the codes and the noise of all items
anew, so the readings of the seeds are independent given the tasks, and an interval over seeds needs no more than that.
(An interval over tasks alone would mistake the luck of one draw of items for a bias.) Each line is a mean over dial
seeds with Student's t interval over these seeds, in percent and points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shotproof.catalog.catalog import Catalog
from shotproof.core.runtime.runtime import Runtime, resolve
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.encoder import encode
from shotproof.stats.intervals import FloatArray, Interval, sampler_interval
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.dial import DialEncoder
from shotproof.worlds.shapes import ShapesWorld

TASKS, SEEDS = 600, 12
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Reading:
    """Worst-class accuracy of one method at one share on the two task sets, in percent, [seeds] each."""

    method: str
    share: float
    random: FloatArray
    biased: FloatArray

    def gap(self, level: float = 0.95) -> Interval:
        """Return wAcc-R - wAcc-A, with its interval over dial seeds."""
        return _over_seeds(self.random - self.biased, level)

    def rise(self, lower: Reading, level: float = 0.95) -> Interval:
        """Return how much larger the gap is than at a lower share, paired by seed."""
        return _over_seeds((self.random - self.biased) - (lower.random - lower.biased), level)


def calibrate(
    catalog: Catalog,
    random: TaskSet,
    biased: TaskSet,
    *,
    methods: Sequence[str] = ("ncc", "cosine"),
    shares: Sequence[float] = SHARES,
    seeds: int = 12,
    runtime: Runtime | None = None,
) -> list[Reading]:
    """Measure random and biased tasks on a world's catalog, by method and then by share.

    Args:
        catalog: of a world that the dial encoder can encode
        random, biased: two task sets of it
        methods: those whose worst-class accuracy is measured
        shares: how far the encoders rely on the context
        seeds: how many encoders per share
        runtime: the runtime to compute with; None for the current one
    """
    current = replace(resolve(runtime), cache=None)
    worst = np.empty((2, len(methods), len(shares), seeds))
    for s, share in enumerate(shares):
        for seed in range(seeds):
            features = encode(catalog, DialEncoder(share=share, seed=seed), runtime=current)
            for t, tasks in enumerate((random, biased)):
                results = evaluate(tasks, features, methods, runtime=current)
                worst[t, :, s, seed] = [results.counts(method).worst_by_task().mean() for method in methods]
    return [
        Reading(method, share, worst[0, m, s], worst[1, m, s])
        for m, method in enumerate(methods)
        for s, share in enumerate(shares)
    ]


def _over_seeds(values: FloatArray, level: float) -> Interval:
    return replace(sampler_interval(values, level), covers="dial seeds")


def run() -> None:
    """Print wAcc-R, wAcc-A and the gap by share, for 1 and 5 shots."""
    world = ShapesWorld()
    catalog, attributes = world.catalog(), world.attributes()
    print(f"{world.classes} classes x {world.items} items, {TASKS} tasks, {SEEDS} dial seeds; in percent")
    for shot in (1, 5):
        random = sample(catalog, "random", shot=shot, tasks=TASKS)
        biased = sample(catalog, "fewstab", attributes=attributes, shot=shot, tasks=TASKS)
        print(f"\n{f'5-way {shot}-shot':<14}{'share':>6}{'wAcc-R':>9}{'wAcc-A':>9}{'gap':>8}   95% interval")
        for reading in calibrate(catalog, random, biased, seeds=SEEDS):
            gap = reading.gap()
            figures = [reading.random.mean(), reading.biased.mean(), gap.mean, gap.low, gap.high]
            line = "{:>9.1f}{:>9.1f}{:>8.2f}   {:.2f} to {:.2f}".format(*figures)
            print(f"{reading.method:<14}{reading.share:>6.1f}{line}")
