"""Proto-LP: centroids by optimal transport, refined by label propagation over a graph of the prototypes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.methods.embedding import main_directions, nearness, unit
from shotproof.methods.full_gram import FullGramMethod, normalised
from shotproof.methods.gram import mean_weights, members
from shotproof.methods.method import require_between, require_positive
from shotproof.methods.power import Negatives, PowerTransform, power_transform
from shotproof.methods.sinkhorn import balance, sinkhorn

TOLERANCE = 1e-3  # of Sinkhorn's row sums
PROPAGATED_TOLERANCE = 0.01  # of those of the propagated labels
JITTER = 1e-9


@dataclass
class ProtoLp(FullGramMethod):
    """Score: the query's share of each class under Sinkhorn of exp(-sharpness |x - centroid|^2).

    Rows: power transform, length 1, 40 main directions, centred, length 1. `steps` times the shares Z, one-hot in the
    support, are propagated over the graph of prototypes that they span, with `smoothness` as the weight of the graph,
    mixed with Z (`mix` of the propagated), and the centroids move by `rate` towards the means so weighted.

    Zhu, Koniusz, Transductive Few-Shot Learning with Prototype-Based Label Propagation by Iterative Graph Refinement,
    CVPR 2023. The shares give every class m / way queries; with `balanced=False` they are a softmax. For negative
    features see `PowerTransform`; `power=1` is no transform.
    """

    steps: int = 100
    rate: float = 0.2
    sharpness: float = 10.0
    smoothness: float = 1.0
    mix: float = 0.6
    power: float = 0.5
    negatives: Negatives = "signed"
    balanced: bool = True

    about = "optimal transport and label propagation between prototypes"

    def __post_init__(self) -> None:
        require_between("steps", self.steps, 0, kind=int)
        require_between("rate", self.rate, 0, 1)
        require_positive("sharpness", self.sharpness, float)
        require_positive("smoothness", self.smoothness, float)
        require_between("mix", self.mix, 0, 1)
        self._transform = power_transform(self.power, self.negatives)

    def transform(self) -> PowerTransform | None:
        """The power transform."""
        return self._transform

    def floats_a_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The products are needed once, for the main directions."""
        return 3 * (support + query) ** 2

    def scores_from_products(self, products: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Rows and centroids in the main directions."""
        rows, support = main_directions(products), labels.shape[1]
        query, of_support = rows[:, support:], members(labels, way)
        share = query.shape[1] / way if self.balanced else None
        centroids = unit(mean_weights(labels, way, rows.shape[1]) @ rows)
        for _ in range(self.steps):
            shares = torch.cat([of_support, sinkhorn(self.sharpness * nearness(query, centroids), share, TOLERANCE)], 2)
            propagated = balance(
                self._propagated(shares, of_support),
                None if share is None else share + of_support.sum(2, keepdim=True),
                PROPAGATED_TOLERANCE,
                fixed=of_support,
            )
            mixed = torch.lerp(shares, propagated, self.mix).clamp_(0, 1)
            centroids.lerp_(normalised(mixed) @ rows, self.rate)
        return sinkhorn(self.sharpness * nearness(query, centroids), share, TOLERANCE).mT

    def _propagated(self, shares: Tensor, of_support: Tensor) -> Tensor:
        """Z (Z_s^T Z_s + smoothness (I - Z^T Z / colsum))^-1 Z_s^T Y, for shares Z, one-hot in the support."""
        counts = of_support.sum(2)
        graph = (shares @ shares.mT) / shares.sum(2).unsqueeze(1)
        system = torch.diag_embed(counts + self.smoothness + JITTER) - self.smoothness * graph
        # The inverse is [way, way]: one more product is faster than a solve with [way, rows] on the right.
        propagated: Tensor = (torch.linalg.inv_ex(system.mT)[0] * counts.unsqueeze(-1)) @ shares
        return propagated
