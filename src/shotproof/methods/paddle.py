"""PADDLE: soft k-means on support and queries, with a penalty on the number of classes in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from shotproof.errors import UnknownName
from shotproof.methods.gram import members
from shotproof.methods.method import Method, require_between, require_positive

SCALES = ("range", "unit", "none")


@dataclass
class Paddle(Method):
    """Score: u = softmax(-|x - w|^2 / 2 + (penalty / m) (log mean u + 1)), w: means of support and queries by u.

    Martin, Boudiaf, Chouzenoux, Pesquet, Ben Ayed, Towards Practical Few-Shot Query Sets: Transductive Minimum
    Description Length Inference, NeurIPS 2022. Each feature is scaled by the range of the task's queries
    (`scale='range'`), or rows to length 1 (`unit`).

    The penalty is made for queries of few of many classes in hundreds of dimensions: in few dimensions, or on rows of
    length 1, it draws all queries into one class. `penalty=0` is soft k-means.
    """

    penalty: float = 75.0
    steps: int = 100
    scale: Literal["range", "unit", "none"] = "range"

    about = "soft k-means with a penalty on classes in use"
    family = "transductive"

    def __post_init__(self) -> None:
        require_between("penalty", self.penalty, 0)
        require_positive("steps", self.steps, int)
        if self.scale not in SCALES:
            raise UnknownName("value of scale", str(self.scale), SCALES)

    def floats_a_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The rows, scaled, and the products of queries."""
        return (support + query) * dims + query * query

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The means are kept as weights of the rows, in float64; the support's part of them stays."""
        known, asked = self._scaled(support, query)
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

    def _scaled(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of both, scaled as they are, then in float64."""
        if self.scale == "unit":
            support, query = (torch.nn.functional.normalize(rows.double(), dim=-1) for rows in (support, query))
        if self.scale == "range":
            least = query.amin(1, keepdim=True)
            width = query.amax(1, keepdim=True) - least
            width = torch.where(width > 0, width, 1.0)
            support, query = ((rows - least).div_(width) for rows in (support, query))
        return support.double(), query.double()
