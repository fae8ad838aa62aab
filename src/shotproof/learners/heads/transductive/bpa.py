"""BPA: replaces each item by its affinities to all items of its task, then applies any method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.learners.bases import PairwiseMethod
from shotproof.learners.method import Method, SeededMethod, make_method

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Bpa(PairwiseMethod):
    """Score: that of `head`, any method on vectors, on rows of balanced affinities between all items of the task.

    The affinities are exp(-(1 - cos) / regularization), without the diagonal, scaled `steps` times to row and column
    sums of 1, then divided by their maximum. Between support rows they are 1 within a class and 0 otherwise.

    This is the algorithm for one task; the published code for batches deviates from it.
    """

    about = "affinities within the task as features, then any method"
    paper = "Shalam, Korman, The Balanced-Pairwise-Affinities Feature Transform, ICML 2024"
    example = "bpa(head='logistic(C=10)')"

    head: str = option("ncc", "method on the affinities, such as 'cosine' or 'logistic(C=10)'")
    regularization: float = option(0.1, "divisor of the cosine distances: smoothness of the affinities", above=0)
    steps: int = option(10, "number of scalings of rows and columns", least=1)

    def __post_init__(self) -> None:
        if isinstance(self.head, Method):
            self._settle(head=self.head.spelling)
        super().__post_init__()
        if self._head.needs != "vectors":
            description = f"'{self.head}', which needs {self._head.needs}"
            raise InputError(f"method 'bpa': head: expected a method on vectors, found {description}")
        self._settle(head=self._head.spelling, balanced=self._head.balanced, in_order=self._head.in_order)

    @cached_property
    def _head(self) -> Method:
        return make_method(self.head)

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Score by the head on the rows of affinities."""
        support = labels.shape[1]
        rows = balanced_affinities(cosines, self.regularization, self.steps)
        rows[:, :support, :support] = (labels.unsqueeze(1) == labels.unsqueeze(2)).to(rows)
        rows.diagonal(dim1=-2, dim2=-1).fill_(1)
        task = (rows[:, :support], labels, rows[:, support:], way)
        if isinstance(self._head, SeededMethod):
            return self._head.seeded_scores(*task, seeds)
        return self._head.scores(*task)


def balanced_affinities(cosines: Tensor, regularization: float, steps: int) -> Tensor:
    """Convert cosines [B, r, r] to affinities with row and column sums of nearly 1, divided by their maximum."""
    kernel = cosines / regularization
    kernel.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    # Rows are scaled first, so a factor of a row cancels: no row underflows, however small the regularization.
    kernel.sub_(kernel.amax(-1, keepdim=True)).exp_()
    columns = torch.ones_like(kernel[:, :1])
    tiny = torch.finfo(kernel.dtype).tiny
    for _ in range(steps):
        rows = 1 / (kernel @ columns.mT).clamp_min(tiny)
        columns = 1 / (rows.mT @ kernel).clamp_min(tiny)
    kernel.mul_(rows).mul_(columns)
    return kernel.div_(kernel.amax((1, 2), keepdim=True))
