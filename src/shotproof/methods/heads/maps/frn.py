"""FRN: how well the class's descriptors reconstruct the query's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.local_maps import ClassDescriptors, MapMethod, chunks, descriptors


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
        """In the dual: with k = S q and a = (S S^T + penalty I)^-1 k, the rebuilt q is e^beta S^T a."""
        d, rho = support.shape[2], math.exp(self.beta)
        scale = 1 / math.sqrt(d) if self.divide else 1.0
        classes = ClassDescriptors.of(descriptors(support) * scale, labels, way)
        asked = descriptors(query) * scale
        penalty = (classes.count / d * math.exp(self.alpha) + 1e-6)[..., None, None]
        eye = torch.eye(classes.rows.shape[2], dtype=torch.float64, device=support.device)
        factor = torch.linalg.cholesky(classes.rows @ classes.rows.mT + penalty * eye)
        scores = []
        for part in chunks(asked, held=3 * asked.shape[2] * classes.present[0].numel()):
            products = classes.rows @ part.flatten(1, 2).mT.unsqueeze(1)  # [B, way, p, queries r]
            weights = torch.cholesky_solve(products, factor)
            agreement = (products * weights).sum(2)
            rebuilt = agreement - penalty.squeeze(-1) * weights.square().sum(2)
            change = rho**2 * rebuilt - 2 * rho * agreement  # |rebuilt|^2 - 2 q.rebuilt: [B, way, queries r]
            error = part.square().sum(-1).unsqueeze(1) + change.view(*change.shape[:2], *part.shape[1:3])
            scores.append(-self.gamma * error.mean(-1).mT)
        return torch.cat(scores, 1)
