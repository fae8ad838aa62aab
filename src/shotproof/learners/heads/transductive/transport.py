"""PT-MAP, Proto-LP and ECPE: queries shared out among the classes by optimal transport."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import inverse_root, mean_weights, members
from shotproof.functional.sinkhorn import balance, sinkhorn
from shotproof.functional.task_rows import main_directions, nearness, normalized, unit_or_zero
from shotproof.learners.bases import PoweredMethod

if TYPE_CHECKING:
    from torch import Tensor

PT_MAP_TOLERANCE = 1e-6
TOLERANCE = 1e-3  # of Sinkhorn's row sums
PROPAGATED_TOLERANCE = 0.01  # of those of the propagated labels
JITTER = 1e-9
LEAST_DEGREE = 1e-200  # of a node that is out of reach of all others


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
            shares = sinkhorn((2 * products).sub_(squares).mul_(self.sharpness), part, PT_MAP_TOLERANCE)
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
        centroids = unit_or_zero(mean_weights(labels, way, rows.shape[1]) @ rows)
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


@dataclass(frozen=True)
class Ecpe(PoweredMethod):
    """Score: the query's label after propagation, balanced over the classes.

    Rows: power transform, length 1, 40 main directions, centered, length 1. `steps` times: labels Z by Sinkhorn of
    exp(-sharpness |x - centroid|^2), one-hot in the support; each row of Z times 1 - its entropy; the centroids move by
    `rate` towards the means weighted by Z; centroids that are told apart better than the rows on average become nodes
    (the others are nodes at the origin, without a label); Z <- (I - reach G)^-1 Z on the normalized graph G.

    As the published code has it. The shares give every class equally many; with `balanced=False` they are a softmax.
    For negative features see `PowerTransform`; `power=1` is no transform.
    """

    about = "label propagation weighed by certainty, prototypes as nodes"
    paper = "Entropy-calibrated prototype embedding, Pattern Recognition Letters 2026"
    example = "ecpe(balanced=False)"

    steps: int = option(10, "rounds of propagation", least=1)
    rate: float = option(0.6, "how far the centroids move in each round", least=0, most=1)
    sharpness: float = option(2.0, "factor of the squared distances", above=0)
    reach: float = option(0.7, "how far labels spread over the graph", least=0, most=0.999)

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Rows and centroids in the main directions."""
        rows, support = main_directions(cosines), labels.shape[1]
        query, of_support = rows[:, support:], members(labels, way)
        centroids = mean_weights(labels, way, rows.shape[1]) @ rows
        graph = Graph(rows, way, self.sharpness, self.reach)
        for _ in range(self.steps):
            near = nearness(query, centroids, self.sharpness)
            shares = sinkhorn(near, self._column(query.shape[1], way), TOLERANCE)
            label = torch.cat([of_support, shares], 2)
            entropy = entropies(label)
            label *= 1 - entropy
            centroids.lerp_(normalized(label) @ rows, self.rate)
            squares = centroids.square().sum(2, keepdim=True)
            affinity = kernel(centroids, squares, centroids, squares, self.sharpness)
            kept = entropies(affinity) < entropy.mean(2, keepdim=True)
            nodes = centroids * kept.mT
            label = graph.propagate(nodes, torch.cat([label, affinity * kept], 2))
            label = balance(label, self._column(label.shape[2], way), TOLERANCE, fixed=of_support)
        return label[..., support : rows.shape[1]].mT

    def _column(self, rows: int, way: int) -> float | None:
        """What each class gets of so many rows: whole rows, as in the published code, where there are enough."""
        return (rows // way or rows / way) if self.balanced else None


class Graph:
    """The graph of rows [B, r, k], which stay, and of `way` centroids, which move."""

    def __init__(self, rows: Tensor, way: int, sharpness: float, reach: float) -> None:
        self._rows, self._sharpness, self._reach = rows, sharpness, reach
        size = rows.shape[1]
        self._squares = rows.square().sum(2, keepdim=True)
        within = kernel(rows, self._squares, rows, self._squares, sharpness)
        within.diagonal(dim1=-2, dim2=-1).zero_()
        self._degree = within.sum(2)
        # D - reach K, of which only the border and the diagonal change.
        self._system = rows.new_empty(len(rows), size + way, size + way)
        torch.mul(within, -reach, out=self._system[:, :size, :size])

    def propagate(self, nodes: Tensor, label: Tensor) -> Tensor:
        """(I - reach D^-1/2 K D^-1/2)^-1 label, for centroids [B, way, k] and labels [B, way, r + way]."""
        size = self._rows.shape[1]
        squares = nodes.square().sum(2, keepdim=True)
        across = kernel(nodes, squares, self._rows, self._squares, self._sharpness)
        among = kernel(nodes, squares, nodes, squares, self._sharpness)
        among.diagonal(dim1=-2, dim2=-1).zero_()
        degree = torch.cat([self._degree + across.sum(1), across.sum(2) + among.sum(2)], 1).clamp_min_(LEAST_DEGREE)
        self._system[:, size:, :size] = -self._reach * across
        self._system[:, :size, size:] = -self._reach * across.mT
        self._system[:, size:, size:] = -self._reach * among
        self._system.diagonal(dim1=-2, dim2=-1).copy_(degree)
        root = degree.sqrt().unsqueeze(1)
        # D^1/2 (D - reach K)^-1 D^1/2 is the inverse above.
        # It is positive definite, for reach < 1. The upper factor spares a copy by columns.
        factor = torch.linalg.cholesky_ex(self._system, upper=True)[0]
        halfway = torch.linalg.solve_triangular(factor.mT, (label * root).mT, upper=False)
        solved: Tensor = torch.linalg.solve_triangular(factor, halfway, upper=True).mT * root
        return solved


def kernel(first: Tensor, first_squares: Tensor, second: Tensor, second_squares: Tensor, sharpness: float) -> Tensor:
    """exp(-sharpness |a - b|^2) for rows a [B, p, k] and b [B, q, k] and their squares [B, ., 1]: [B, p, q]."""
    distances = torch.baddbmm(first_squares + second_squares.mT, first, second.mT, alpha=-2)
    return distances.clamp_min_(0).mul_(-sharpness).exp_()


def entropies(label: Tensor) -> Tensor:
    """The entropy of each row's distribution over the classes, of at most 1: [B, way, rows] to [B, 1, rows]."""
    share = label / label.sum(1, keepdim=True).clamp_min(torch.finfo(label.dtype).tiny)
    entropy: Tensor = torch.special.entr(share).sum(1, keepdim=True) / math.log(max(2, label.shape[1]))
    return entropy
