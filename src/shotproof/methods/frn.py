"""FRN: how well the class's descriptors reconstruct the query's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.errors import InputError
from shotproof.methods.local_maps import MapMethod, Pools, chunks, descriptors
from shotproof.methods.method import require_positive


@dataclass
class FeatureMapReconstruction(MapMethod):
    """Score: minus gamma times the mean squared error of the query's descriptors, rebuilt by ridge regression.

    Wertheimer, Tang and Hariharan, Few-Shot Classification with Feature Map Reconstruction Networks, 2021. With the
    class's k r descriptors S of d channels, the penalty is k r / d e^alpha + 1e-6 and the reconstruction of q is
    e^beta q (S^T S + penalty I)^-1 S^T S. alpha, beta and gamma are learned in the paper; the defaults are where
    training starts. `divide` divides all descriptors by sqrt(d) first, as the paper does for its ResNet.
    """

    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 1.0
    divide: bool = True

    about = "FRN: ridge reconstruction of the query's map from the class's"

    def __post_init__(self) -> None:
        for option in ("alpha", "beta"):
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"{option}: expected a number, found {value!r}")
        require_positive("gamma", self.gamma, float)
        if not isinstance(self.divide, bool):
            raise InputError(f"divide: expected True or False, found {self.divide!r}")

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """In the dual: with k = S q and a = (S S^T + penalty I)^-1 k, the rebuilt q is e^beta S^T a."""
        d, rho = support.shape[2], math.exp(self.beta)
        scale = 1 / math.sqrt(d) if self.divide else 1.0
        pools = Pools.of(descriptors(support) * scale, labels, way)
        asked = descriptors(query) * scale
        penalty = (pools.count / d * math.exp(self.alpha) + 1e-6)[..., None, None]
        eye = torch.eye(pools.rows.shape[2], dtype=torch.float64, device=support.device)
        factor = torch.linalg.cholesky(pools.rows @ pools.rows.mT + penalty * eye)
        scores = []
        for part in chunks(asked, held=3 * asked.shape[2] * pools.present[0].numel()):
            products = pools.rows @ part.flatten(1, 2).mT.unsqueeze(1)  # [B, way, p, queries r]
            weights = torch.cholesky_solve(products, factor)
            agreement = (products * weights).sum(2)
            rebuilt = agreement - penalty.squeeze(-1) * weights.square().sum(2)
            change = rho**2 * rebuilt - 2 * rho * agreement  # |rebuilt|^2 - 2 q.rebuilt: [B, way, queries r]
            error = part.square().sum(-1).unsqueeze(1) + change.view(*change.shape[:2], *part.shape[1:3])
            scores.append(-self.gamma * error.mean(-1).mT)
        return torch.cat(scores, 1)
