"""FRN: how well the class's descriptors reconstruct the query's."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.map_method import MapMethod
from shotproof.models.scoring.local_maps import ClassDescriptors, descriptors
from shotproof.models.scoring.reconstruction import reconstruction_errors


@dataclass(frozen=True)
class FeatureMapReconstruction(MapMethod):
    """Score: minus gamma times the mean squared error of the query's descriptors, rebuilt by ridge regression.

    With the class's k r descriptors S of d channels, the penalty is k r / d e^alpha + 1e-6 and the reconstruction of q
    is e^beta q (S^T S + penalty I)^-1 S^T S. alpha, beta and gamma are learned in the paper; the defaults are where
    training starts. `divide` divides all descriptors by sqrt(d) first, as the paper does for its ResNet.
    """

    about = "FRN: ridge reconstruction of the query's map from the class's"
    paper = "Wertheimer, Tang and Hariharan, Few-Shot Classification with Feature Map Reconstruction Networks, 2021"
    example = "frn(divide=False)"

    alpha: float = option(0.0, "logarithm of the penalty's factor", least=-700, most=700)
    beta: float = option(0.0, "logarithm of the reconstruction's factor", least=-300, most=300)
    gamma: float = option(1.0, "factor of the error", above=0)
    divide: bool = option(True, "divide descriptors by the root of their number of channels")

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Minus the errors, in the dual."""
        scale = 1 / math.sqrt(support.shape[2]) if self.divide else 1.0
        classes = ClassDescriptors.of(descriptors(support) * scale, labels, way)
        asked = descriptors(query) * scale
        return -self.gamma * reconstruction_errors(classes, asked, math.exp(self.alpha), math.exp(self.beta))
