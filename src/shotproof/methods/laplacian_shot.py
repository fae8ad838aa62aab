"""LaplacianShot: nearest prototypes, smoothed over a graph of neighbouring queries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.methods.bd_cspn import voted_distances
from shotproof.methods.gram import mean_weights
from shotproof.methods.method import require_between, require_positive
from shotproof.methods.pairwise import PairwiseMethod
from shotproof.methods.shifted import ShiftedRows


@dataclass
class LaplacianShot(PairwiseMethod):
    """Score: y, where y <- softmax(-a + strength W y), from y = softmax(-a).

    a: squared distances to the prototypes, rows of length 1; W: 1 for each query's nearest queries. The prototypes
    are rectified and the queries shifted as in `bd-cspn(form='laplacianshot')`, or the support means (`rectify=False`).

    It is made `steps` times; `temperature` is that of the rectification.

    Ziko, Dolz, Granger, Ben Ayed, Laplacian Regularized Few-Shot Learning, ICML 2020. `neighbours` counts the query
    itself, as there: 3 are two others. Queries equally near as the last one that counts all count.
    """

    strength: float = 1.0
    neighbours: int = 3
    steps: int = 20
    rectify: bool = True
    temperature: float = 10.0

    about = "prototypes and a graph of neighbouring queries"

    def __post_init__(self) -> None:
        require_between("strength", self.strength, 0)
        require_positive("neighbours", self.neighbours, int)
        require_positive("steps", self.steps, int)
        require_positive("temperature", self.temperature, float)

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """A fixed number of steps: a task that has converged stays where it is."""
        support = labels.shape[1]
        unary = -self._distances(cosines, labels, way)
        graph = neighbour_graph(cosines[:, support:, support:], self.neighbours - 1)
        answer = unary.softmax(1)
        for _ in range(self.steps):
            answer = torch.baddbmm(unary, answer, graph, alpha=self.strength).softmax(1)
        return answer.mT

    def _distances(self, cosines: Tensor, labels: Tensor, way: int) -> Tensor:
        """Squared distances of queries to prototypes: [B, way, m]."""
        if self.rectify:
            return voted_distances(ShiftedRows(cosines, labels, way), labels, way, self.temperature)
        weights = mean_weights(labels, way, cosines.shape[-1])
        products_with_means = weights @ cosines
        squares = (weights * products_with_means).sum(2, keepdim=True)
        lengths2 = cosines.diagonal(dim1=-2, dim2=-1).unsqueeze(1)
        return (lengths2 - 2 * products_with_means + squares)[..., labels.shape[1] :].clamp_min_(0)


def neighbour_graph(similarity: Tensor, count: int) -> Tensor:
    """1 at [p, q] where p is among the `count` queries most similar to q, itself aside: [B, m, m]."""
    count = min(count, similarity.shape[-1] - 1)
    if count == 0:
        return torch.zeros_like(similarity)
    left = similarity.clone()
    left.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    # The count-th largest by taking the largest away: much faster than a partial sort of many short columns.
    for _ in range(count - 1):
        left.masked_fill_(left == left.amax(-2, keepdim=True), -torch.inf)
    graph = torch.ge(similarity, left.amax(-2, keepdim=True), out=left)
    graph.diagonal(dim1=-2, dim2=-1).zero_()
    return graph
