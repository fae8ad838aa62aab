"""Nearest class centroid, by Euclidean distance; also how prototypical networks classify."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.methods.shared.centroid import CentroidMethod
from shotproof.methods.shared.gram import NEGLIGIBLE, mean_weights


@dataclass(frozen=True)
class NearestCentroid(CentroidMethod):
    """Score: minus the squared Euclidean distance from the query to the class's mean support row.

    As prototypical networks classify.
    """

    about = "nearest class centroid, Euclidean"
    paper = "Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, 2017"

    def weights(self, support_norm2: Tensor, labels: Tensor, way: int) -> Tensor:
        """Those of the mean row."""
        return mean_weights(labels, way)

    def scores_from_centroids(
        self, products: Tensor, centroid_norm2: Tensor, query_norm2: Tensor, support_norm2: Tensor
    ) -> Tensor:
        """Minus |x|^2 - 2 x.p + |p|^2 for query x and centroid p."""
        lengths = query_norm2 + centroid_norm2
        distance = torch.sub(lengths, products, alpha=2)
        return torch.where(distance > NEGLIGIBLE * lengths, distance, 0.0).neg_()

    def rounding(self, lengths: Tensor, centroid_norm2: Tensor, query_norm2: Tensor) -> Tensor:
        """Twice that of x.p, and that of |p|^2."""
        return (lengths + query_norm2.sqrt()).square_()
