"""PADDLE: soft k-means on support and queries, with a penalty on the number of classes in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import members
from shotproof.functional.task_rows import (
    COLLAPSE,
    VARIANT,
    Variant,
    centered_rows,
    distances_to_means,
    scale_of,
)
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor

_DIFFER = 8.0  # how much half squared distances differ between classes where the features may be any


@dataclass(frozen=True)
class Paddle(Method):
    """Score: u = softmax(-|x - w|^2 / 2 + (penalty / m) (log mean u + 1)), w: means of support and queries by u.

    Each feature is scaled by the range of the task's queries (`scale='range'`), or rows to length 1 (`unit`).

    The penalty is made for queries of few of many classes in hundreds of dimensions: in few dimensions, or on rows of
    length 1, it draws all queries into one class. `penalty=0` is soft k-means. With `variant='anywhere'` rows of length
    1 are centered on their task's mean and scaled in each task until the penalty fits; `scale` has no say then.
    """

    about = "soft k-means with a penalty on classes in use"
    paper = "Martin et al., Towards Practical Few-Shot Query Sets, NeurIPS 2022"
    example = "paddle(penalty=0, steps=20, scale='unit')"
    family = "transductive"

    penalty: float = option(75.0, "price of a class in use; 0: soft k-means", least=0)
    steps: int = option(100, "rounds of k-means", least=1)
    scale: Literal["range", "unit", "none"] = option(
        "range", "each feature by its range in the queries, rows to length 1, or nothing"
    )
    variant: Variant = option("published", VARIANT)
    collapse_help = f"{COLLAPSE}, or a lower penalty"

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The rows, scaled, and the products of queries."""
        return (support + query) * dims + query * query

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The means are kept as weights of the rows, in float64; the support's part of them stays."""
        known, asked = self._scaled(support, labels, query, way)
        of_support, count = members(labels, way), query.shape[1]
        shots = of_support.sum(2, keepdim=True)
        total_by_support = of_support @ known
        between, by_support = asked @ asked.mT, total_by_support @ asked.mT
        square_by_support = total_by_support.square().sum(2, keepdim=True)
        # Of the classes' totals: products with the queries, squares, and numbers of rows.
        products, squares, size = by_support, square_by_support, shots
        bonus = torch.zeros_like(shots)
        for _ in range(self.steps):
            # Without |x|^2, which is the same for all classes.
            used = torch.addcdiv(bonus.addcdiv_(squares, size.square(), value=-0.5), products, size).softmax(1)
            gained = used.sum(2, keepdim=True)
            bonus = (gained / count).add_(1e-6).log_().add_(1).mul_(self.penalty / count)
            products = torch.baddbmm(by_support, used, between)
            squares = square_by_support + (products + by_support).mul_(used).sum(2, keepdim=True)
            size = shots + gained
        return used.mT

    def _scaled(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> tuple[Tensor, Tensor]:
        """The rows of both, scaled as they are, then in float64."""
        if self.variant == "anywhere":
            rows = centered_rows(torch.cat([support, query], 1))
            known, asked = rows[:, : labels.shape[1]], rows[:, labels.shape[1] :]
            factor = scale_of(distances_to_means(known, labels, asked, way), _DIFFER).sqrt()
            return known * factor, asked * factor
        if self.scale == "unit":
            support, query = (torch.nn.functional.normalize(rows.double(), dim=-1) for rows in (support, query))
        if self.scale == "range":
            least = query.amin(1, keepdim=True)
            width = query.amax(1, keepdim=True) - least
            width = torch.where(width > 0, width, 1.0)
            support, query = ((rows - least).div_(width) for rows in (support, query))
        return support.double(), query.double()
