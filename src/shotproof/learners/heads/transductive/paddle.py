"""PADDLE: soft k-means on support and queries, with a penalty on the number of classes used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import class_membership
from shotproof.functional.task_rows import (
    COLLAPSE,
    VARIANT,
    Variant,
    centered_rows,
    distance_scale,
    distances_to_means,
)
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor

_SPREAD = 8.0  # spread of half squared distances over classes with variant='anywhere'


@dataclass(frozen=True)
class Paddle(Method):
    """Score: u = softmax(-|x - w|^2 / 2 + (penalty / m) (log mean u + 1)), w: means of support and queries by u.

    Each feature is scaled by the range of the task's queries (`scale='range'`), or rows to length 1 (`unit`).

    The penalty is designed for queries of few of many classes in hundreds of dimensions: in few dimensions, or on rows
    of length 1, it pulls all queries into one class. `penalty=0` is soft k-means. With `variant='anywhere'` rows of
    length 1 are centered on their task's mean and scaled in each task to fit the penalty; `scale` is then ignored.
    """

    about = "soft k-means with a penalty on the number of classes used"
    paper = "Martin et al., Towards Practical Few-Shot Query Sets, NeurIPS 2022"
    example = "paddle(penalty=0, steps=20, scale='unit')"
    family = "transductive"

    penalty: float = option(75.0, "penalty for each class used; 0: soft k-means", least=0)
    steps: int = option(100, "iterations of k-means", least=1)
    scale: Literal["range", "unit", "none"] = option(
        "range", "scale each feature by its range in the queries, rows to length 1, or nothing"
    )
    variant: Variant = option("published", VARIANT)
    collapse_help = f"{COLLAPSE}, or a lower penalty"

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the scaled rows and the inner products of queries."""
        return (support + query) * dims + query * query

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Run soft k-means, with means represented as weights of the rows, in float64; support weights are constant."""
        support_rows, query_rows = self._scale(support, labels, query, way)
        membership, count = class_membership(labels, way), query.shape[1]
        shots = membership.sum(2, keepdim=True)
        support_totals = membership @ support_rows
        query_products, support_products = query_rows @ query_rows.mT, support_totals @ query_rows.mT
        support_squares = support_totals.square().sum(2, keepdim=True)
        # Of the class totals: products with the queries, squared lengths, and numbers of rows.
        products, squares, counts = support_products, support_squares, shots
        bonus = torch.zeros_like(shots)
        for _ in range(self.steps):
            # |x|^2 is left out, as it is the same for all classes.
            p = torch.addcdiv(bonus.addcdiv_(squares, counts.square(), value=-0.5), products, counts).softmax(1)
            query_totals = p.sum(2, keepdim=True)
            bonus = (query_totals / count).add_(1e-6).log_().add_(1).mul_(self.penalty / count)
            products = torch.baddbmm(support_products, p, query_products)
            squares = support_squares + (products + support_products).mul_(p).sum(2, keepdim=True)
            counts = shots + query_totals
        return p.mT

    def _scale(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> tuple[Tensor, Tensor]:
        """Scale the rows of support and query in their own dtype, then convert to float64."""
        if self.variant == "anywhere":
            rows = centered_rows(torch.cat([support, query], 1))
            support_rows, query_rows = rows[:, : labels.shape[1]], rows[:, labels.shape[1] :]
            factor = distance_scale(distances_to_means(support_rows, labels, query_rows, way), _SPREAD).sqrt()
            return support_rows * factor, query_rows * factor
        if self.scale == "unit":
            support, query = (torch.nn.functional.normalize(rows.double(), dim=-1) for rows in (support, query))
        if self.scale == "range":
            minimum = query.amin(1, keepdim=True)
            span = query.amax(1, keepdim=True) - minimum
            span = torch.where(span > 0, span, 1.0)
            support, query = ((rows - minimum).div_(span) for rows in (support, query))
        return support.double(), query.double()
