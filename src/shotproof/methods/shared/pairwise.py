"""Transductive methods that need only cosines, of all pairs of a task's items: [n + m, n + m], in float64.

A centroid is a weighted sum of rows of length 1. It is kept as its weights, so that a step costs the same in 64 and in
2,048 dimensions. Weights and scores are [B, way, rows]: the classes come first, which is several times as fast on a CPU
as sums and softmaxes over a last axis of 5.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.features.power import Negatives, PowerTransform, power_transform
from shotproof.methods.method import Method
from shotproof.methods.shared.gram import inverse_root


@dataclass(frozen=True)
class UnitRows:
    """Rows scaled to length 1, after a power transform where there is one; a zero row stays zero."""

    power: PowerTransform | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows [..., d], transformed, in float64."""
        rows = self.power(rows.double()) if self.power else rows.double()
        return rows * inverse_root(rows.square().sum(-1, keepdim=True))


class PairwiseMethod(Method):
    """A transductive method that sees support and queries through their cosines only."""

    family = "transductive"

    @abstractmethod
    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """The scores [B, m, way] from float64 cosines [B, n + m, n + m], support first, and labels [B, n].

        The cosines are inner products of rows as `scaling` makes them, so those of a zero row are zero. Methods share
        them, and leave them as they are. The seeds [B] are for methods that draw.
        """

    @property
    def scaling(self) -> UnitRows:
        """What is done to the rows before the products."""
        return UnitRows()

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The cosines and the copies of them that a step works on."""
        return 6 * (support + query + way) ** 2

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores from features, under seed 0."""
        rows = self.scaling(torch.cat([support, query], 1))
        return self.scores_from_cosines(rows @ rows.mT, labels, way, labels.new_zeros(len(labels)))


@dataclass(frozen=True, kw_only=True)
class PoweredMethod(PairwiseMethod):
    """One that transforms its features first and may assume that every class has equally many queries."""

    power: float = option(0.5, "power that the features are raised to; 1: none", above=0)
    negatives: Negatives = option("signed", "features below 0: mirrored, taken as 0 (relu), or an error (refuse)")
    balanced: bool = option(True, "every class has equally many queries")

    @property
    def scaling(self) -> UnitRows:
        """The power transform, then length 1."""
        return UnitRows(power_transform(self.power, self.negatives))


def normalized(weights: Tensor) -> Tensor:
    """Weights [B, way, rows] that sum to 1 in each class; zeros where all are zero."""
    return weights / weights.sum(2, keepdim=True).clamp_min_(torch.finfo(weights.dtype).tiny)
