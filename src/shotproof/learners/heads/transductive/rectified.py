"""BD-CSPN and LaplacianShot: prototypes rectified by the queries that look like them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import inverse_root, mean_weights, members
from shotproof.functional.task_rows import (
    COLLAPSE,
    VARIANT,
    ShiftedRows,
    Variant,
    centered_cosines,
    normalized,
    scale_of,
)
from shotproof.learners.bases import PairwiseMethod

if TYPE_CHECKING:
    from torch import Tensor

FORMS = {"easyfsl": 1.0, "laplacianshot": 10.0, "soft": 30.0}  # and the temperature of each
_DIFFER = 2.0  # how much squared distances differ between classes where the features may be any


@dataclass(frozen=True)
class BdCspn(PairwiseMethod):
    """Prototypes are averaged anew over the support and the queries, these shifted so that both have one mean.

    The paper has no code of its own, and three published forms differ. All take rows of length 1; z is a row (a query
    shifted), P a class's mean support row.

    - `easyfsl`: a query votes for its nearest P by cosine, a support row for its class; a class's voters are averaged
      with weights exp(temperature cos(z, P)). Score: the cosine with the query as it was.
    - `laplacianshot`: every row, support too, votes for its nearest P; the prototype is the mean of the voters times
      softmax(temperature cos), so it is shorter than they are. Score: minus the squared distance of the shifted query.
    - `soft`: each z, scaled to length 1, is shared out by softmax(temperature cos). Score: minus the squared distance
      between the query as it was and the weighted mean, scaled to length 1.

    The temperature is 1, 10 and 30 unless given. A class that gets no weight keeps P.
    """

    about = "prototypes rectified by pseudo-labeled queries"
    paper = "Liu, Song, Qin, Prototype Rectification for Few-Shot Learning, ECCV 2020"
    example = "bd-cspn(form='soft')"

    form: Literal["easyfsl", "laplacianshot", "soft"] = option("easyfsl", "which of the published forms")
    temperature: float | None = option(None, "factor of the cosines; None: 1, 10 or 30 by form", above=0)

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Rectify, then compare."""
        temperature = self.temperature or FORMS[self.form]
        rows = ShiftedRows(cosines, labels, way)
        if self.form == "laplacianshot":
            return -voted_distances(rows, labels, way, temperature).mT
        if self.form == "easyfsl":
            votes = _votes(rows.cosines)
            votes[..., : labels.shape[1]] = members(labels, way)
            weights = votes * (temperature * rows.cosines).exp()
        else:
            weights = (temperature * rows.cosines).softmax(1) * inverse_root(rows.squares, 1.0)
        products_with_x, _, squares = rows.products_with_sums(normalized(weights))
        cosines = (products_with_x * inverse_root(squares, 1.0))[..., labels.shape[1] :].mT
        return cosines if self.form == "easyfsl" else 2 * cosines - 2


def voted_distances(rows: ShiftedRows, labels: Tensor, way: int, temperature: float) -> Tensor:
    """Form `laplacianshot`: squared distances of the shifted queries to the rectified prototypes, [B, way, m]."""
    votes = _votes(rows.cosines)
    voters = votes.sum(2, keepdim=True)
    weights = votes * (temperature * rows.cosines).softmax(1) / voters.clamp_min(1)
    weights = torch.where(voters > 0, weights, mean_weights(labels, way, votes.shape[2]))
    _, products_with_z, squares = rows.products_with_sums(weights)
    distances = (rows.squares - 2 * products_with_z + squares)[..., labels.shape[1] :]
    return distances.clamp_min_(0)


def _votes(cosines: Tensor) -> Tensor:
    """1 for each row's nearest class, and for each of those that tie: [B, way, rows]."""
    return (cosines == cosines.amax(1, keepdim=True)).double()


@dataclass(frozen=True)
class LaplacianShot(PairwiseMethod):
    """Score: y, where y <- softmax(-a + strength W y), from y = softmax(-a).

    a: squared distances to the prototypes, rows of length 1; W: 1 for each query's nearest queries. The prototypes
    are rectified and the queries shifted as in `bd-cspn(form='laplacianshot')`, or the support means (`rectify=False`).

    It is made `steps` times; `temperature` is that of the rectification.

    `neighbors` counts the query itself, as the paper does: 3 are two others. Queries equally near as the last one that
    counts all count.

    The distances of rows of length 1 are small where these are not centered (cosines near 1); the graph then decides
    alone, and all queries fall into few classes. `variant='anywhere'` centers the rows of length 1 on their task's mean
    and scales the distances in each task; or center the features (the transform `center`), or lower `strength`.
    """

    about = "prototypes and a graph of neighboring queries"
    paper = "Ziko, Dolz, Granger, Ben Ayed, Laplacian Regularized Few-Shot Learning, ICML 2020"
    example = "laplacianshot(strength=0.7, rectify=False)"

    strength: float = option(1.0, "weight of the graph beside the distances", least=0)
    neighbors: int = option(3, "queries joined to each query, itself included", least=1)
    steps: int = option(20, "rounds of smoothing", least=1)
    rectify: bool = option(True, "rectify the prototypes and shift the queries first")
    temperature: float = option(10.0, "factor of the cosines in the rectification", above=0)
    variant: Variant = option("published", VARIANT)
    collapse_help = f"{COLLAPSE}, or a lower strength"

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """A fixed number of steps: a task that has converged stays where it is."""
        support = labels.shape[1]
        if self.variant == "anywhere":
            cosines = centered_cosines(cosines)
        unary = -self._distances(cosines, labels, way)
        if self.variant == "anywhere":
            unary *= scale_of(unary, _DIFFER)
        graph = neighbor_graph(cosines[:, support:, support:], self.neighbors - 1)
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


def neighbor_graph(similarity: Tensor, count: int) -> Tensor:
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
