"""PT-MAP, Proto-LP and ECPE: soft assignment of queries to classes by optimal transport."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import class_membership, inverse_root, mean_weights
from shotproof.functional.sinkhorn import balance, sinkhorn
from shotproof.functional.task_rows import main_directions, nearness, normalized, unit_or_zero
from shotproof.learners.bases import PoweredMethod

if TYPE_CHECKING:
    from torch import Tensor

PT_MAP_TOLERANCE = 1e-6
TOLERANCE = 1e-3  # on Sinkhorn's row sums
PROPAGATED_TOLERANCE = 0.01  # on the row sums of the propagated labels
JITTER = 1e-9
LEAST_DEGREE = 1e-200  # degree of a node disconnected from all others


@dataclass(frozen=True)
class PtMap(PoweredMethod):
    """Score: the query's assignment to each class by Sinkhorn on exp(-sharpness |x - centroid|^2).

    Rows are power-transformed, scaled to length 1, centered separately for support and queries, and scaled to length 1
    again. Then, `steps` times, the centroids move by `rate` towards the means weighted by the assignments.

    The assignments give every class m / way queries; with `balanced=False` they are a softmax. For negative features,
    which do not occur in the paper, see `negatives`; `power=1` means no transform.
    """

    about = "power transform, centroids by optimal transport"
    paper = "Hu, Gripon, Pateux, Leveraging the Feature Distribution in Transfer-based Few-Shot Learning, ICANN 2021"
    example = "pt-map(balanced=False)"

    steps: int = option(20, "number of centroid updates", least=0)
    rate: float = option(0.2, "how far the centroids move in each step", least=0, most=1)
    sharpness: float = option(10.0, "factor of the squared distances", above=0)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the products; many small steps dominate the time, so larger batches are faster."""
        return (support + query) ** 2

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Alternate assignments and centroids, which are represented as weights of the rows."""
        support = labels.shape[1]
        unit = center_separately(cosines, support)
        scale = inverse_root(unit.diagonal(dim1=-2, dim2=-1), 1.0)
        unit.mul_(scale.unsqueeze(-1)).mul_(scale.unsqueeze(-2))
        membership = class_membership(labels, way)
        totals = membership @ unit[:, :support]  # products of each class's sum of support rows with all rows
        shots, support_products, query_products = (
            membership.sum(2, keepdim=True),
            totals[..., support:],
            unit[:, support:, support:],
        )
        support_squares = (totals[..., :support] * membership).sum(2, keepdim=True)
        class_total = query_products.shape[1] / way if self.balanced else None
        # A centroid is `support_weight` times the sum of its support plus the queries weighted by `query_weights`.
        support_weight, query_weights = 1 / shots, torch.zeros_like(support_products)
        for step in range(self.steps + 1):
            support_part = support_weight * support_products
            products = torch.baddbmm(support_part, query_weights, query_products)
            squares = support_part.add_(products).mul_(query_weights).sum(2, keepdim=True)
            squares.addcmul_(support_weight.square(), support_squares)
            # |x|^2 is left out, as it is the same for all classes.
            shares = sinkhorn((2 * products).sub_(squares).mul_(self.sharpness), class_total, PT_MAP_TOLERANCE)
            if step < self.steps:
                counts = shots + shares.sum(2, keepdim=True)
                support_weight.lerp_(1 / counts, self.rate)
                query_weights.lerp_(shares / counts, self.rate)
        return shares.mT


def center_separately(products: Tensor, support: int) -> Tensor:
    """Compute the products [B, r, r] after centering support and queries separately, each by its own mean."""
    rows = products.shape[-1]
    is_support = (torch.arange(rows, device=products.device) < support).double()
    parts = torch.stack([is_support, 1 - is_support])
    shares = parts / parts.sum(1, keepdim=True)
    means = products @ shares.T  # products of each row with the mean of each part, [B, r, 2]
    between = (shares @ means) @ parts  # products between the means of the parts
    # P - means parts - (means parts)^T + parts^T between, as one product.
    left = torch.cat([means, parts.T.expand_as(means)], 2)
    right = torch.cat([parts.expand_as(between), means.mT - between], 1)
    return torch.baddbmm(products, left, right, alpha=-1)


@dataclass(frozen=True)
class ProtoLp(PoweredMethod):
    """Score: the query's assignment to each class by Sinkhorn on exp(-sharpness |x - centroid|^2).

    Rows are power-transformed, scaled to length 1, projected onto 40 singular directions, centered, and scaled to
    length 1. `steps` times, the assignments Z, one-hot in the support s, are propagated over the graph of prototypes
    that they define, with the graph weighted by `smoothness`:
    Z (Z_s^T Z_s + smoothness (I - Z^T Z / colsum))^-1 Z_s^T Z_s. The result is mixed with Z (a fraction `mix` of it),
    and the centroids move by `rate` towards the means with these weights.

    The assignments give every class m / way queries; with `balanced=False` they are a softmax. For negative features
    see `negatives`; `power=1` means no transform.
    """

    about = "optimal transport and label propagation between prototypes"
    paper = (
        "Zhu, Koniusz, Transductive Few-Shot Learning with Prototype-Based Label Propagation by Iterative Graph "
        "Refinement, CVPR 2023"
    )
    example = "proto-lp(balanced=False)"

    steps: int = option(100, "number of centroid updates", least=0)
    rate: float = option(0.2, "how far the centroids move in each step", least=0, most=1)
    sharpness: float = option(10.0, "factor of the squared distances", above=0)
    smoothness: float = option(1.0, "weight of the graph between prototypes", above=0)
    mix: float = option(0.6, "weight of the propagated labels", least=0, most=1)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the products once; many small steps dominate the time, so larger batches are faster."""
        return (support + query) ** 2

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Alternate assignments and centroids, on rows in the main singular directions."""
        rows, support = main_directions(cosines), labels.shape[1]
        query, membership = rows[:, support:], class_membership(labels, way)
        counts = membership.sum(2, keepdim=True)
        class_total = query.shape[1] / way if self.balanced else None
        total_with_support = None if class_total is None else class_total + counts
        # Z_s^T Z_s + smoothness I
        fixed = torch.diag_embed(counts.squeeze(2) + self.smoothness + JITTER)
        centroids = unit_or_zero(mean_weights(labels, way, rows.shape[1]) @ rows)
        for _ in range(self.steps):
            shares = sinkhorn(nearness(query, centroids, self.sharpness), class_total, TOLERANCE)
            shares = torch.cat([membership, shares], 2)
            graph = (shares @ shares.mT).div_(shares.sum(2).unsqueeze(1))
            # The inverse is [way, way]: one more product is faster than a solve with [way, rows] on the right.
            inverse = torch.linalg.inv_ex(torch.sub(fixed, graph, alpha=self.smoothness).mT)[0]
            propagated = balance(
                inverse.mul_(counts) @ shares, total_with_support, PROPAGATED_TOLERANCE, fixed=membership
            )
            mixed = shares.lerp_(propagated, self.mix).clamp_(0, 1)
            centroids.lerp_(normalized(mixed) @ rows, self.rate)
        return sinkhorn(nearness(query, centroids, self.sharpness), class_total, TOLERANCE).mT


@dataclass(frozen=True)
class Ecpe(PoweredMethod):
    """Score: the query's label after propagation, balanced over the classes.

    Rows are power-transformed, scaled to length 1, projected onto 40 singular directions, centered, and scaled to
    length 1. Each step has four parts. (1) Labels Z by Sinkhorn on exp(-sharpness |x - centroid|^2), one-hot in the
    support; each row of Z is weighted by 1 - its entropy. (2) The centroids move by `rate` towards the means weighted
    by Z. (3) Centroids with less entropy than the mean of the rows become nodes; the others are nodes at the origin,
    without a label. (4) Z <- (I - reach G)^-1 Z on the normalized graph G.

    This follows the published code. The assignments give every class equally many queries; with `balanced=False` they
    are a softmax. For negative features see `negatives`; `power=1` means no transform.
    """

    about = "label propagation weighted by certainty, with prototypes as nodes"
    paper = "Entropy-calibrated prototype embedding, Pattern Recognition Letters 2026"
    example = "ecpe(balanced=False)"

    steps: int = option(10, "number of propagation steps", least=1)
    rate: float = option(0.6, "how far the centroids move in each step", least=0, most=1)
    sharpness: float = option(2.0, "factor of the squared distances", above=0)
    reach: float = option(0.7, "how far labels spread over the graph", least=0, most=0.999)

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Alternate assignments and centroids, on rows in the main singular directions."""
        rows, support = main_directions(cosines), labels.shape[1]
        query, membership = rows[:, support:], class_membership(labels, way)
        centroids = mean_weights(labels, way, rows.shape[1]) @ rows
        graph = Graph(rows, way, self.sharpness, self.reach)
        for _ in range(self.steps):
            near = nearness(query, centroids, self.sharpness)
            shares = sinkhorn(near, self._class_total(query.shape[1], way), TOLERANCE)
            soft_labels = torch.cat([membership, shares], 2)
            entropy = entropies(soft_labels)
            soft_labels *= 1 - entropy
            centroids.lerp_(normalized(soft_labels) @ rows, self.rate)
            squares = centroids.square().sum(2, keepdim=True)
            affinity = kernel(centroids, squares, centroids, squares, self.sharpness)
            is_certain = entropies(affinity) < entropy.mean(2, keepdim=True)
            nodes = centroids * is_certain.mT
            soft_labels = graph.propagate(nodes, torch.cat([soft_labels, affinity * is_certain], 2))
            soft_labels = balance(
                soft_labels, self._class_total(soft_labels.shape[2], way), TOLERANCE, fixed=membership
            )
        return soft_labels[..., support : rows.shape[1]].mT

    def _class_total(self, rows: int, way: int) -> float | None:
        """Return the number of rows per class, rounded down as in the published code if it is at least 1."""
        return (rows // way or rows / way) if self.balanced else None


class Graph:
    """Graph of fixed rows [B, r, k] and `way` moving centroids."""

    def __init__(self, rows: Tensor, way: int, sharpness: float, reach: float) -> None:
        self._rows, self._sharpness, self._reach = rows, sharpness, reach
        size = rows.shape[1]
        self._squares = rows.square().sum(2, keepdim=True)
        within = kernel(rows, self._squares, rows, self._squares, sharpness)
        within.diagonal(dim1=-2, dim2=-1).zero_()
        self._degree = within.sum(2)
        # D - reach K; only its last rows and columns and its diagonal change.
        self._system = rows.new_empty(len(rows), size + way, size + way)
        torch.mul(within, -reach, out=self._system[:, :size, :size])

    def propagate(self, nodes: Tensor, label: Tensor) -> Tensor:
        """Compute (I - reach D^-1/2 K D^-1/2)^-1 label for centroids [B, way, k] and labels [B, way, r + way]."""
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
        # The inverse equals D^1/2 (D - reach K)^-1 D^1/2, where D - reach K is positive definite for reach < 1. The
        # upper Cholesky factor avoids a transposed copy.
        factor = torch.linalg.cholesky_ex(self._system, upper=True)[0]
        halfway = torch.linalg.solve_triangular(factor.mT, (label * root).mT, upper=False)
        solved: Tensor = torch.linalg.solve_triangular(factor, halfway, upper=True).mT * root
        return solved


def kernel(first: Tensor, first_squares: Tensor, second: Tensor, second_squares: Tensor, sharpness: float) -> Tensor:
    """Compute exp(-sharpness |a - b|^2) for rows a [B, p, k], b [B, q, k] and their squares [B, ., 1]: [B, p, q]."""
    distances = torch.baddbmm(first_squares + second_squares.mT, first, second.mT, alpha=-2)
    return distances.clamp_min_(0).mul_(-sharpness).exp_()


def entropies(label: Tensor) -> Tensor:
    """Compute the normalized entropy, at most 1, of each row's class distribution: [B, way, rows] to [B, 1, rows]."""
    share = label / label.sum(1, keepdim=True).clamp_min(torch.finfo(label.dtype).tiny)
    entropy: Tensor = torch.special.entr(share).sum(1, keepdim=True) / math.log(max(2, label.shape[1]))
    return entropy
