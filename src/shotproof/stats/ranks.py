"""Rank ranges that follow from conclusive pairs, shared by comparisons, cards and leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shotproof.core.arrays import BoolArray, FloatArray
from shotproof.results.evaluated import Classifier
from shotproof.stats.pairs import Pair


@dataclass(frozen=True)
class RankRange:
    """Range of ranks among all classifiers that the interval allows: from `best` to `worst`, 1 is best.

    Example:
        >>> str(RankRange(1, 3, 5)), RankRange(1, 3, 5).span, RankRange(4, 4, 5).span
        ('1 to 3 of 5', '1–3', '4')
    """

    best: int
    worst: int
    of: int

    @property
    def span(self) -> str:
        """Format the range alone, for table cells."""
        return f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"

    def __str__(self) -> str:
        ranks = f"{self.best}" if self.best == self.worst else f"{self.best} to {self.worst}"
        return f"{ranks} of {self.of}"


def rank_ranges(means: Mapping[Classifier, float], pairs: Sequence[Pair]) -> dict[Classifier, RankRange]:
    """Rank each classifier from behind all that are conclusively better to before all that are conclusively worse.

    Args:
        means: means of all classifiers to rank; the highest is best
        pairs: pairs of these classifiers

    Returns:
        The ranges, in the order of the means. If a pair is conclusive, its better one has the better range at both
        ends.
    """
    indices = {classifier: index for index, classifier in enumerate(means)}
    better = np.zeros((len(means), len(means)), dtype=np.bool_)
    for pair in pairs:
        if pair.conclusion != "0":
            above, below = (pair.a, pair.b) if pair.conclusion == "+" else (pair.b, pair.a)
            better[indices[below], indices[above]] = True
    implied = with_implied(better, np.array(list(means.values())))
    return dict(zip(means, ranges_of(implied), strict=True))


def with_implied(better: BoolArray, means: FloatArray) -> BoolArray:
    """Add what conclusive pairs imply: if a is better than b and b than c, a is better than c, whatever their own pair.

    Pairs are seldom inconclusive if others imply a conclusion; they are if their own interval is refused, or has fewer
    degrees of freedom. Then two classifiers could have the same range although one is conclusively better. Since Holm's
    correction ensures that all conclusions hold jointly, all that they imply holds too.

    Args:
        better: [n, n], whether the classifier of the column is conclusively better than that of the row, and so has the
            better mean
        means: [n], the highest is best

    Returns:
        The same matrix with everything that it implies.
    """
    order = np.argsort(-means, kind="stable")
    direct = better[np.ix_(order, order)]
    reachable = np.packbits(direct, axis=1)  # as bits, because the pairs of thousands of classifiers are many
    for index, ahead in enumerate(direct):
        # Whatever is better than a member of the leading block lies within the block.
        block = int(np.argmin(ahead))
        beyond = block + np.flatnonzero(ahead[block:])
        reachable[index] |= np.bitwise_or.reduce(reachable[beyond], axis=0)
    implied = np.empty_like(direct)
    implied[np.ix_(order, order)] = np.unpackbits(reachable, axis=1, count=len(means))
    return implied


def ranges_of(better: BoolArray) -> list[RankRange]:
    """Compute the ranges from a matrix of who is better than whom, as returned by `with_implied`."""
    count = len(better)
    ahead, behind = better.sum(axis=1).tolist(), better.sum(axis=0).tolist()
    return [RankRange(1 + before, count - after, count) for before, after in zip(ahead, behind, strict=True)]
