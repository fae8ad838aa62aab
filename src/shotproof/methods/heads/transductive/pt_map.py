"""PT-MAP: power transform, then centroids of queries shared out by optimal transport."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import inverse_root, members
from shotproof.methods.shared.pairwise import PoweredMethod
from shotproof.methods.shared.sinkhorn import sinkhorn

TOLERANCE = 1e-6


@dataclass(frozen=True)
class PtMap(PoweredMethod):
    """Score: the query's share of each class under Sinkhorn of exp(-sharpness |x - centroid|^2).

    The power transform, length 1, the mean of the support and that of the queries taken away from each, length 1
    again. Then `steps` times the centroids move by `rate` towards the means weighted by the shares.

    The shares give every class m / way queries; with `balanced=False` they are a softmax. For negative features, which
    the paper does not have, see `PowerTransform`; `power=1` is no transform.
    """

    about = "power transform, centroids by optimal transport"
    paper = "Hu, Gripon, Pateux, Leveraging the Feature Distribution in Transfer-based Few-Shot Learning, ICANN 2021"
    example = "pt-map(balanced=False)"

    steps: int = option(20, "moves of the centroids", least=0)
    rate: float = option(0.2, "how far the centroids move in each step", least=0, most=1)
    sharpness: float = option(10.0, "factor of the squared distances", above=0)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The products; most of the time goes into small steps, faster for more tasks."""
        return (support + query) ** 2

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """The centroids are kept as weights of the rows."""
        support = labels.shape[1]
        unit = centered_apart(cosines, support)
        scale = inverse_root(unit.diagonal(dim1=-2, dim2=-1), 1.0)
        unit.mul_(scale.unsqueeze(-1)).mul_(scale.unsqueeze(-2))
        of_support = members(labels, way)
        totals = of_support @ unit[:, :support]  # sums of each class's support rows, times all rows
        shots, by_support, between = of_support.sum(2, keepdim=True), totals[..., support:], unit[:, support:, support:]
        square_by_support = (totals[..., :support] * of_support).sum(2, keepdim=True)
        part = between.shape[1] / way if self.balanced else None
        # A centroid is `known` times its support's sum plus queries with the weights `guessed`.
        known, guessed = 1 / shots, torch.zeros_like(by_support)
        for step in range(self.steps + 1):
            of_known = known * by_support
            products = torch.baddbmm(of_known, guessed, between)
            squares = of_known.add_(products).mul_(guessed).sum(2, keepdim=True)
            squares.addcmul_(known.square(), square_by_support)
            # Without |x|^2, which is the same for all classes.
            shares = sinkhorn((2 * products).sub_(squares).mul_(self.sharpness), part, TOLERANCE)
            if step < self.steps:
                size = shots + shares.sum(2, keepdim=True)
                known.lerp_(1 / size, self.rate)
                guessed.lerp_(shares / size, self.rate)
        return shares.mT


def centered_apart(products: Tensor, support: int) -> Tensor:
    """The products [B, r, r] after the support's mean is taken from the support and the queries' from the queries."""
    rows = products.shape[-1]
    is_support = (torch.arange(rows, device=products.device) < support).double()
    parts = torch.stack([is_support, 1 - is_support])
    shares = parts / parts.sum(1, keepdim=True)
    means = products @ shares.T  # of each row with each part, [B, r, 2]
    between = (shares @ means) @ parts  # the parts' means, with each other
    # P - means parts - (means parts)^T + parts^T between, as one product.
    left = torch.cat([means, parts.T.expand_as(means)], 2)
    right = torch.cat([parts.expand_as(between), means.mT - between], 1)
    return torch.baddbmm(products, left, right, alpha=-1)
