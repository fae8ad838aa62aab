"""The shares and the mismatch of every attribute in a task set, added up block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from shotproof.analysis.explanation.chance import FloatArray
from shotproof.analysis.explanation.mismatch import Sides, TaskBlock, blocks
from shotproof.analysis.explanation.running_means import RunningMeans
from shotproof.attributes.attributes import HeldWords
from shotproof.core.errors import Mismatch
from shotproof.core.runtime.runtime import Runtime
from shotproof.stats.intervals import Interval


@dataclass(frozen=True)
class Shares:
    """One attribute in one task set; all are percentages or points, means over classes and tasks.

    support, query: how many of the items hold it
    mismatch: |percentage of a class's support - percentage of its query|; pooled, of all classes of a task as one
    chance: the mismatch of the same items if they were divided at random
    often: how many classes have a mismatch of 50 points or more
    """

    support: float
    query: float
    mismatch: Interval
    chance: float
    beyond_chance: Interval
    often: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "support": self.support,
            "query": self.query,
            **interval_json("mismatch", self.mismatch),
            "chance": self.chance,
            **interval_json("beyond_chance", self.beyond_chance),
            "often": self.often,
        }


class SetMismatch:
    """The sums over the blocks of one set that were added so far."""

    def __init__(self, words: int, classes: int, paired: bool) -> None:
        self.mismatch, self.beyond_chance, self.below_first = (RunningMeans(words + 1) for _ in range(3))
        self.support, self.query, self.often = (np.zeros(words) for _ in range(3))
        self.classes, self.paired = classes, paired

    def add(self, block: TaskBlock, first: TaskBlock | None) -> None:
        """Add a block of tasks; `first` are the tasks of the explained set that these are paired with."""
        self.mismatch.add(block.mismatch)
        self.beyond_chance.add(block.mismatch - block.chance)
        if first is not None:
            self.below_first.add(first.mismatch - block.mismatch)
        self.support += block.support
        self.query += block.query
        self.often += block.often

    @property
    def chance(self) -> FloatArray:
        """The mean mismatch by chance: [words + 1]."""
        return self.mismatch.mean - self.beyond_chance.mean

    def shares(self, column: int, level: float) -> Shares:
        """One attribute."""
        return Shares(
            float(self.support[column]) / self.mismatch.count,
            float(self.query[column]) / self.mismatch.count,
            self.mismatch.estimate(column).interval("sampler", level),
            float(self.chance[column]),
            self.beyond_chance.estimate(column).interval("sampler", level),
            100 * float(self.often[column]) / self.classes,
        )

    def difference(self, other: SetMismatch, column: int, level: float) -> Interval:
        """This set's mismatch minus another's: task by task where they are paired."""
        if other.paired:
            return other.below_first.estimate(column).interval("sampler", level)
        return self.mismatch.estimate(column).minus(other.mismatch.estimate(column)).interval("sampler", level)


def mismatch_of_sets(
    sides: Sequence[Sides], held: HeldWords, paired: Sequence[bool], runtime: Runtime
) -> list[SetMismatch]:
    """Go through all sets side by side, so that paired ones meet block by block."""
    for side, is_paired in zip(sides, paired, strict=True):
        if is_paired and len(side.tasks) != len(sides[0].tasks):
            raise Mismatch(f"sets of {len(sides[0].tasks)} and of {len(side.tasks)} tasks cannot be paired")
    classes = [int((side.support.sizes > 0).sum()) for side in sides]
    found = [SetMismatch(len(held.words), *given) for given in zip(classes, paired, strict=True)]
    with runtime.progress_bar("mismatch", sum(len(side.tasks) for side in sides)) as advance:
        for at_once in zip_longest(*(blocks(side, held) for side in sides)):
            for one, block in zip(found, at_once, strict=True):
                if block is not None:
                    one.add(block, at_once[0] if one.paired else None)
                    advance(block.mismatch.shape[0])
    return found


def interval_json(name: str, interval: Interval) -> dict[str, Any]:
    """A mean and its interval under the name; an interval that cannot be given is None."""
    return {name: interval.mean, f"{name}_interval": interval.bounds}
