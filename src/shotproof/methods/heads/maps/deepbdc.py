"""DeepBDC: Brownian distance covariance between the channels of a map."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.heads.inductive.ncc import NearestCentroid
from shotproof.methods.shared.gram import GramBlocks, mean_weights
from shotproof.methods.shared.map_method import MapMethod
from shotproof.models.scoring.local_maps import MOST_HELD

EPSILON = 1e-5  # inside the root, as in the published code


@dataclass(frozen=True)
class DeepBdc(MapMethod):
    """Score: minus the squared distance from the query's BDC matrix to the class's mean one.

    With one shot per class it is their inner product. The BDC matrix is sqrt(e^t |F_i - F_j|^2 + 1e-5) over all pairs
    of channels, its rows' and columns' means removed; the upper triangle counts. t is learned in the paper; None is
    where training starts, log(1 / (2 locations)). The cost grows with the square of the channels: the transform
    `project` makes fewer of them, as the paper's trained layer does.
    """

    about = "DeepBDC: Brownian distance covariance of channels"
    paper = (
        "Xie et al., Joint Distribution Matters: Deep Brownian Distance Covariance for Few-Shot Classification, 2022"
    )

    t: float | None = option(None, "logarithm of the scale; None: where training starts", least=-700, most=700)

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Through the inner products of the matrices, as the nearest centroid."""
        maps = torch.cat([support, query], 1).double().flatten(3)
        t = -math.log(2 * maps.shape[-1]) if self.t is None else self.t
        gram = bdc_products(maps, support.shape[1], math.exp(t))
        distance = NearestCentroid().scores_from_gram(gram, labels, way)
        products = gram.query @ mean_weights(labels, way).mT
        one_shot = torch.nn.functional.one_hot(labels, way).sum(1).amax(-1) == 1
        return torch.where(one_shot[:, None, None], products, distance)


def bdc_products(maps: Tensor, support: int, scale: float) -> GramBlocks:
    """Maps [B, n + m, d, r], of which the first n = `support` are the support, to the products of their BDC vectors.

    For E before its means are removed, <A, B> = <E, F> - 2 d r_E.r_F + d^2 mean_E mean_F, where r are the means of the
    rows: so E is formed a few rows at a time, and never kept.
    """
    d = maps.shape[2]
    norm2 = maps.square().sum(-1)
    products: Tensor | float = 0.0
    own: Tensor | float = 0.0
    means = []
    size = max(1, MOST_HELD // (3 * norm2.numel()))
    for start in range(0, d, size):
        rows = slice(start, start + size)
        distance2 = norm2[:, :, rows].unsqueeze(-1) + norm2.unsqueeze(2) - 2 * maps[:, :, rows] @ maps.mT
        roots = (scale * distance2.clamp(min=0) + EPSILON).sqrt()
        means.append(roots.mean(-1))
        flat = roots.flatten(2)
        products = products + flat @ flat[:, :support].mT
        own = own + flat[:, support:].square().sum(-1)
    mean = torch.cat(means, -1)  # [B, n + m, d]
    grand = mean.mean(-1, keepdim=True)
    diagonal = math.sqrt(EPSILON) - 2 * mean + grand
    # The upper triangle with the diagonal: half of everything, and half of the diagonal again.
    products = products - 2 * d * mean @ mean[:, :support].mT + d**2 * grand @ grand[:, :support].mT
    products = (products + diagonal @ diagonal[:, :support].mT) / 2
    asked, middle, corner = mean[:, support:], grand[:, support:, 0], diagonal[:, support:]
    own = own - 2 * d * asked.square().sum(-1) + d**2 * middle.square() + corner.square().sum(-1)
    return GramBlocks(products[:, :support], products[:, support:], own / 2)
