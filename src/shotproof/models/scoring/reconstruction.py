"""FRN's measure: how well a class's descriptors reconstruct a query's."""

from __future__ import annotations

import torch
from torch import Tensor

from shotproof.models.scoring.local_maps import ClassDescriptors, chunks


def reconstruction_errors(
    classes: ClassDescriptors, asked: Tensor, strength: float | Tensor, rho: float | Tensor
) -> Tensor:
    """The mean squared error of a query's descriptors, rebuilt from each class's by ridge regression, [B, m, way].

    In the dual: with the class's descriptors S, k = S q and a = (S S^T + penalty I)^-1 k, the rebuilt q is rho S^T a.

    Args:
        classes: float64 descriptors of each class
        asked: those of the queries, float64 [B, m, r, d]
        strength: the penalty is this times the number of the class's descriptors over d, plus 1e-6
        rho: factor of what is rebuilt
    """
    d = asked.shape[-1]
    penalty = (classes.count / d * strength + 1e-6)[..., None, None]
    eye = torch.eye(classes.rows.shape[2], dtype=asked.dtype, device=asked.device)
    factor = torch.linalg.cholesky(classes.rows @ classes.rows.mT + penalty * eye)
    errors = []
    for part in chunks(asked, held=3 * asked.shape[2] * classes.present[0].numel()):
        products = classes.rows @ part.flatten(1, 2).mT.unsqueeze(1)  # [B, way, p, queries r]
        weights = torch.cholesky_solve(products, factor)
        agreement = (products * weights).sum(2)
        rebuilt = agreement - penalty.squeeze(-1) * weights.square().sum(2)
        change = rho**2 * rebuilt - 2 * rho * agreement  # |rebuilt|^2 - 2 q.rebuilt: [B, way, queries r]
        error = part.square().sum(-1).unsqueeze(1) + change.view(*change.shape[:2], *part.shape[1:3])
        errors.append(error.mean(-1).mT)
    return torch.cat(errors, 1)
