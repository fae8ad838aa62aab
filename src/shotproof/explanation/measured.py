"""One task set while it is gone through block by block: the shares and the mismatch of every attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from shotproof.attributes.attributes import HeldWords
from shotproof.errors import Mismatch
from shotproof.explanation.chance import FloatArray
from shotproof.explanation.mismatch import Block, Sides, blocks
from shotproof.explanation.running import RunningMoments
from shotproof.progress import progress
from shotproof.stats.intervals import Interval


@dataclass(frozen=True)
class Shares:
    """One attribute in one task set; all are shares, means over classes and tasks.

    support, query: the share of the items that hold it
    mismatch: |share of a class's support - share of its query|
    chance: the mismatch of the same items if they were divided at random
    often: the share of classes with a mismatch of one half or more
    """

    support: float
    query: float
    mismatch: Interval
    chance: float
    beyond_chance: Interval
    often: float

    def to_json(self) -> dict[str, Any]:
        """In percent points."""
        return {
            "support": 100 * self.support,
            "query": 100 * self.query,
            **percent_of("mismatch", self.mismatch),
            "chance": 100 * self.chance,
            **percent_of("beyond_chance", self.beyond_chance),
            "often": 100 * self.often,
        }


class Measured:
    """The sums over the blocks of one set that were added so far."""

    def __init__(self, words: int, classes: int, paired: bool) -> None:
        self.mismatch, self.beyond_chance, self.below_first = (RunningMoments(words + 1) for _ in range(3))
        self.support, self.query, self.often = (np.zeros(words) for _ in range(3))
        self.classes, self.paired = classes, paired

    def add(self, block: Block, first: Block | None) -> None:
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
            float(self.often[column]) / self.classes,
        )

    def difference(self, other: Measured, column: int, level: float) -> Interval:
        """This set's mismatch minus another's: task by task where they are paired."""
        if other.paired:
            return other.below_first.estimate(column).interval("sampler", level)
        return self.mismatch.estimate(column).minus(other.mismatch.estimate(column)).interval("sampler", level)


def measure(sides: Sequence[Sides], held: HeldWords, paired: Sequence[bool]) -> list[Measured]:
    """Go through all sets side by side, so that paired ones meet block by block."""
    for side, is_paired in zip(sides, paired, strict=True):
        if is_paired and len(side.tasks) != len(sides[0].tasks):
            raise Mismatch(f"sets of {len(sides[0].tasks)} and of {len(side.tasks)} tasks cannot be paired")
    classes = [len(side.support.sizes) - side.left_out for side in sides]
    measured = [Measured(len(held.words), *given) for given in zip(classes, paired, strict=True)]
    with progress("mismatch", sum(len(side.tasks) for side in sides)) as advance:
        for at_once in zip_longest(*(blocks(side, held) for side in sides)):
            for one, block in zip(measured, at_once, strict=True):
                if block is not None:
                    one.add(block, at_once[0] if one.paired else None)
                    advance(block.mismatch.shape[0])
    return measured


def percent_of(name: str, interval: Interval) -> dict[str, Any]:
    """A mean and its interval in percent points, under the name; an interval that cannot be given is None."""
    bounds = None if interval.refused else [100 * interval.low, 100 * interval.high]
    return {name: 100 * interval.mean, f"{name}_interval": bounds}
