"""BD-CSPN and LaplacianShot: prototypes rectified by pseudo-labeled queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import class_membership, inverse_root, mean_weights
from shotproof.functional.task_rows import (
    COLLAPSE,
    VARIANT,
    ShiftedRows,
    Variant,
    centered_cosines,
    distance_scale,
    normalized,
)
from shotproof.learners.bases import PairwiseMethod

if TYPE_CHECKING:
    from torch import Tensor

FORMS = {"easyfsl": 1.0, "laplacianshot": 10.0, "soft": 30.0}  # default temperature of each form
_SPREAD = 2.0  # spread of squared distances over classes with variant='anywhere'


@dataclass(frozen=True)
class BdCspn(PairwiseMethod):
    """Prototype rectification: prototypes are re-averaged over the support and the pseudo-labeled queries.

    Queries are first shifted so that their mean equals that of the support. The paper has no published code, and three
    published implementations differ. All use rows of length 1; z is a row (queries shifted), P the class mean of the
    support.

    - `easyfsl`: a query votes for its nearest P by cosine, a support row for its class; a class's voters are averaged
      with weights exp(temperature cos(z, P)). Score: the cosine with the unshifted query.
    - `laplacianshot`: every row, including support, votes for its nearest P; the prototype is the mean of the voters
      times softmax(temperature cos), so it is shorter than they are. Score: minus the squared distance of the shifted
      query.
    - `soft`: each z, scaled to length 1, is assigned softly by softmax(temperature cos). Score: minus the squared
      distance between the unshifted query and the weighted mean, scaled to length 1.

    The default temperature is 1, 10 and 30. A class that gets no weight keeps P.
    """

    about = "prototypes rectified by pseudo-labeled queries"
    paper = "Liu, Song, Qin, Prototype Rectification for Few-Shot Learning, ECCV 2020"
    example = "bd-cspn(form='soft')"

    form: Literal["easyfsl", "laplacianshot", "soft"] = option("easyfsl", "published implementation to follow")
    temperature: float | None = option(None, "factor of the cosines; None: 1, 10 or 30 by form", above=0)

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Rectify the prototypes, then compare queries with them."""
        temperature = self.temperature or FORMS[self.form]
        rows = ShiftedRows(cosines, labels, way)
        if self.form == "laplacianshot":
            return -rectified_distances(rows, labels, way, temperature).mT
        if self.form == "easyfsl":
            votes = _votes(rows.cosines)
            votes[..., : labels.shape[1]] = class_membership(labels, way)
            weights = votes * (temperature * rows.cosines).exp()
        else:
            weights = (temperature * rows.cosines).softmax(1) * inverse_root(rows.squares, 1.0)
        products_with_x, _, squares = rows.products_with_sums(normalized(weights))
        cosines = (products_with_x * inverse_root(squares, 1.0))[..., labels.shape[1] :].mT
        return cosines if self.form == "easyfsl" else 2 * cosines - 2


def rectified_distances(rows: ShiftedRows, labels: Tensor, way: int, temperature: float) -> Tensor:
    """Compute squared distances of shifted queries to the prototypes of the form `laplacianshot`, [B, way, m]."""
    votes = _votes(rows.cosines)
    voters = votes.sum(2, keepdim=True)
    weights = votes * (temperature * rows.cosines).softmax(1) / voters.clamp_min(1)
    weights = torch.where(voters > 0, weights, mean_weights(labels, way, votes.shape[2]))
    _, products_with_z, squares = rows.products_with_sums(weights)
    distances = (rows.squares - 2 * products_with_z + squares)[..., labels.shape[1] :]
    return distances.clamp_min_(0)


def _votes(cosines: Tensor) -> Tensor:
    """Return 1 for each row's nearest class, including ties, else 0: [B, way, rows]."""
    return (cosines == cosines.amax(1, keepdim=True)).double()


@dataclass(frozen=True)
class LaplacianShot(PairwiseMethod):
    """Score: y, where y <- softmax(-a + strength W y), from y = softmax(-a).

    a: squared distances to the prototypes, rows of length 1; W: 1 for each query's nearest queries. The prototypes
    are rectified and the queries shifted as in `bd-cspn(form='laplacianshot')`, or the support means (`rectify=False`).

    The update is repeated `steps` times; `temperature` is that of the rectification.

    `neighbors` counts the query itself, as in the paper: 3 means two others. Queries that tie with the last neighbor
    all count.

    If features are not centered (cosines near 1), distances of rows of length 1 are small; the graph then decides
    alone, and all queries collapse into few classes. `variant='anywhere'` centers the rows of length 1 on their task's
    mean and scales the distances in each task; alternatives are the transform `center`, or a lower `strength`.
    """

    about = "prototypes regularized by a graph of neighboring queries"
    paper = "Ziko, Dolz, Granger, Ben Ayed, Laplacian Regularized Few-Shot Learning, ICML 2020"
    example = "laplacianshot(strength=0.7, rectify=False)"

    strength: float = option(1.0, "weight of the graph relative to the distances", least=0)
    neighbors: int = option(3, "queries connected to each query, including itself", least=1)
    steps: int = option(20, "iterations of smoothing", least=1)
    rectify: bool = option(True, "rectify the prototypes and shift the queries first")
    temperature: float = option(10.0, "factor of the cosines in the rectification", above=0)
    variant: Variant = option("published", VARIANT)
    collapse_help = f"{COLLAPSE}, or a lower strength"

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Iterate a fixed number of times; a converged task no longer changes."""
        support = labels.shape[1]
        if self.variant == "anywhere":
            cosines = centered_cosines(cosines)
        unary = -self._distances(cosines, labels, way)
        if self.variant == "anywhere":
            unary *= distance_scale(unary, _SPREAD)
        graph = neighbor_graph(cosines[:, support:, support:], self.neighbors - 1)
        p = unary.softmax(1)
        for _ in range(self.steps):
            p = torch.baddbmm(unary, p, graph, alpha=self.strength).softmax(1)
        return p.mT

    def _distances(self, cosines: Tensor, labels: Tensor, way: int) -> Tensor:
        """Compute squared distances of queries to prototypes: [B, way, m]."""
        if self.rectify:
            return rectified_distances(ShiftedRows(cosines, labels, way), labels, way, self.temperature)
        weights = mean_weights(labels, way, cosines.shape[-1])
        products_with_means = weights @ cosines
        squares = (weights * products_with_means).sum(2, keepdim=True)
        lengths2 = cosines.diagonal(dim1=-2, dim2=-1).unsqueeze(1)
        return (lengths2 - 2 * products_with_means + squares)[..., labels.shape[1] :].clamp_min_(0)


def neighbor_graph(similarity: Tensor, count: int) -> Tensor:
    """Return 1 at [p, q] if p is among the `count` other queries most similar to q, else 0: [B, m, m]."""
    count = min(count, similarity.shape[-1] - 1)
    if count == 0:
        return torch.zeros_like(similarity)
    remaining = similarity.clone()
    remaining.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    # Removing the maximum repeatedly finds the count-th largest much faster than a partial sort of many short columns.
    for _ in range(count - 1):
        remaining.masked_fill_(remaining == remaining.amax(-2, keepdim=True), -torch.inf)
    graph = torch.ge(similarity, remaining.amax(-2, keepdim=True), out=remaining)
    graph.diagonal(dim1=-2, dim2=-1).zero_()
    return graph
