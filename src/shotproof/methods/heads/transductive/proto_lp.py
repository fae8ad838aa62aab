"""Proto-LP: centroids by optimal transport, refined by label propagation over a graph of the prototypes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.embedding import main_directions, nearness, unit
from shotproof.methods.shared.gram import mean_weights, members
from shotproof.methods.shared.pairwise import PoweredMethod, normalized
from shotproof.methods.shared.sinkhorn import balance, sinkhorn

TOLERANCE = 1e-3  # of Sinkhorn's row sums
PROPAGATED_TOLERANCE = 0.01  # of those of the propagated labels
JITTER = 1e-9


@dataclass(frozen=True)
class ProtoLp(PoweredMethod):
    """Score: the query's share of each class under Sinkhorn of exp(-sharpness |x - centroid|^2).

    Rows: power transform, length 1, 40 main directions, centered, length 1. `steps` times the shares Z, one-hot in the
    support s, are propagated over the graph of prototypes that they span, with `smoothness` as the weight of the graph:
    Z (Z_s^T Z_s + smoothness (I - Z^T Z / colsum))^-1 Z_s^T Z_s. They are mixed with Z (`mix` of the propagated), and
    the centroids move by `rate` towards the means so weighted.

    The shares give every class m / way queries; with `balanced=False` they are a softmax. For negative features see
    `PowerTransform`; `power=1` is no transform.
    """

    about = "optimal transport and label propagation between prototypes"
    paper = (
        "Zhu, Koniusz, Transductive Few-Shot Learning with Prototype-Based Label Propagation by Iterative Graph "
        "Refinement, CVPR 2023"
    )
    example = "proto-lp(balanced=False)"

    steps: int = option(100, "moves of the centroids", least=0)
    rate: float = option(0.2, "how far the centroids move in each step", least=0, most=1)
    sharpness: float = option(10.0, "factor of the squared distances", above=0)
    smoothness: float = option(1.0, "weight of the graph between prototypes", above=0)
    mix: float = option(0.6, "share of the propagated labels", least=0, most=1)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The products, once; most of the time goes into small steps, faster for more tasks."""
        return (support + query) ** 2

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Rows and centroids in the main directions."""
        rows, support = main_directions(cosines), labels.shape[1]
        query, of_support = rows[:, support:], members(labels, way)
        counts = of_support.sum(2, keepdim=True)
        share = query.shape[1] / way if self.balanced else None
        with_support = None if share is None else share + counts
        # Z_s^T Z_s + smoothness I
        fixed = torch.diag_embed(counts.squeeze(2) + self.smoothness + JITTER)
        centroids = unit(mean_weights(labels, way, rows.shape[1]) @ rows)
        for _ in range(self.steps):
            shares = sinkhorn(nearness(query, centroids, self.sharpness), share, TOLERANCE)
            shares = torch.cat([of_support, shares], 2)
            graph = (shares @ shares.mT).div_(shares.sum(2).unsqueeze(1))
            # The inverse is [way, way]: one more product is faster than a solve with [way, rows] on the right.
            inverse = torch.linalg.inv_ex(torch.sub(fixed, graph, alpha=self.smoothness).mT)[0]
            propagated = balance(inverse.mul_(counts) @ shares, with_support, PROPAGATED_TOLERANCE, fixed=of_support)
            mixed = shares.lerp_(propagated, self.mix).clamp_(0, 1)
            centroids.lerp_(normalized(mixed) @ rows, self.rate)
        return sinkhorn(nearness(query, centroids, self.sharpness), share, TOLERANCE).mT
