"""ECPE: label propagation over all items of a task, with labels weighed by their certainty and prototypes as nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.embedding import main_directions, nearness
from shotproof.methods.shared.gram import mean_weights, members
from shotproof.methods.shared.pairwise import PoweredMethod, normalized
from shotproof.methods.shared.sinkhorn import balance, sinkhorn

TOLERANCE = 1e-3
LEAST_DEGREE = 1e-200  # of a node that is out of reach of all others


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
