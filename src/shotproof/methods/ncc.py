"""Nearest class centroid, by Euclidean distance; also how prototypical networks classify."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.methods.gram import NEGLIGIBLE, GramMethod, centroid_products


@dataclass
class NearestCentroid(GramMethod):
    """Score: minus the squared Euclidean distance from the query to the class's mean support row.

    As prototypical networks classify: Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, 2017.
    """

    about = "nearest class centroid, Euclidean"

    def scores_from_gram(
        self, support_gram: Tensor, query_gram: Tensor, query_norm2: Tensor, labels: Tensor, way: int
    ) -> Tensor:
        """Minus |x|^2 - 2 x.p + |p|^2 for query x and centroid p."""
        products, norm2 = centroid_products(support_gram, query_gram, labels, way)
        lengths = query_norm2.unsqueeze(-1) + norm2.unsqueeze(-2)
        distance = lengths - 2 * products
        return -torch.where(distance > NEGLIGIBLE * lengths, distance, 0.0)
