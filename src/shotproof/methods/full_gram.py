"""Transductive methods that need only inner products, of all pairs of a task's items: [n + m, n + m], in float64.

A centroid is a weighted sum of rows. It is kept as its weights, so that a step costs the same in 64 and in 2,048
dimensions. Weights and scores are [B, way, rows]: the classes come first, which is several times as fast on a CPU as
sums and softmaxes over a last axis of 5.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from shotproof.methods.gram import inverse_root
from shotproof.methods.method import Method
from shotproof.methods.power import PowerTransform


class FullGramMethod(Method):
    """A transductive method that sees support and queries through their inner products only."""

    family = "transductive"

    @abstractmethod
    def scores_from_products(self, products: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """The scores [B, m, way] from float64 products [B, n + m, n + m], support first, and labels [B, n].

        The products are shared by methods and must stay as they are. The seeds [B] are for methods that draw.
        """

    def transform(self) -> PowerTransform | None:
        """What is done to each feature before the products."""
        return None

    def floats_a_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The products and the copies of them that a step works on."""
        return 6 * (support + query + way) ** 2

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scores from features, under seed 0."""
        rows = transformed(torch.cat([support, query], 1), self.transform())
        return self.scores_from_products(rows @ rows.mT, labels, way, labels.new_zeros(len(labels)))


def transformed(rows: Tensor, transform: PowerTransform | None) -> Tensor:
    """Rows in float64, transformed."""
    return transform(rows.double()) if transform else rows.double()


def unit_products(products: Tensor) -> Tensor:
    """The products of the rows scaled to length 1; a zero row stays zero. A new tensor."""
    scale = inverse_root(products.diagonal(dim1=-2, dim2=-1))
    return (products * scale.unsqueeze(-1)).mul_(scale.unsqueeze(-2))


def normalised(weights: Tensor) -> Tensor:
    """Weights [B, way, rows] that sum to 1 in each class; zeros where all are zero."""
    total = weights.sum(2, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total)
