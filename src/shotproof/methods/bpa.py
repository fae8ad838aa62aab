"""BPA: each item becomes its affinities to all items of its task; then any method."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.errors import InputError
from shotproof.methods.method import SeededMethod, make_method, require_positive
from shotproof.methods.pairwise import PairwiseMethod


@dataclass
class Bpa(PairwiseMethod):
    """Score: that of `head`, any method on vectors, on rows of balanced affinities between all items of the task.

    The affinities are exp(-(1 - cos) / regularisation), without the diagonal, scaled `steps` times to row and column
    sums of 1, then divided by their largest. Between support rows they are 1 in one class and 0 otherwise.

    Shalam, Korman, The Balanced-Pairwise-Affinities Feature Transform, ICML 2024; the recipe for one task, which the
    published code for batches departs from.
    """

    head: str = "ncc"
    regularisation: float = 0.1
    steps: int = 10

    about = "affinities within the task as features, then any method"

    def __post_init__(self) -> None:
        require_positive("regularisation", self.regularisation, float)
        require_positive("steps", self.steps, int)
        if not isinstance(self.head, str):
            raise InputError(f"head: expected a method such as 'ncc' or 'logistic(C=10)', found {self.head!r}")
        self._head = make_method(self.head)
        if self._head.needs != "vectors":
            raise InputError(f"head: expected a method on vectors, found '{self.head}', which needs {self._head.needs}")
        self.balanced, self.in_order = self._head.balanced, self._head.in_order

    def scores_from_cosines(self, cosines: Tensor, labels: Tensor, way: int, seeds: Tensor) -> Tensor:
        """The head on the rows of affinities."""
        support = labels.shape[1]
        rows = balanced_affinities(cosines, self.regularisation, self.steps)
        rows[:, :support, :support] = (labels.unsqueeze(1) == labels.unsqueeze(2)).to(rows)
        rows.diagonal(dim1=-2, dim2=-1).fill_(1)
        task = (rows[:, :support], labels, rows[:, support:], way)
        if isinstance(self._head, SeededMethod):
            return self._head.seeded_scores(*task, seeds)
        return self._head.scores(*task)


def balanced_affinities(cosines: Tensor, regularisation: float, steps: int) -> Tensor:
    """Cosines [B, r, r] to affinities with row and column sums of nearly 1, divided by their largest."""
    kernel = cosines / regularisation
    kernel.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    # Rows are scaled first, so that a factor of a row is free: no row vanishes however small the regularisation.
    kernel.sub_(kernel.amax(-1, keepdim=True)).exp_()
    columns = torch.ones_like(kernel[:, :1])
    tiny = torch.finfo(kernel.dtype).tiny
    for _ in range(steps):
        rows = 1 / (kernel @ columns.mT).clamp_min(tiny)
        columns = 1 / (rows.mT @ kernel).clamp_min(tiny)
    kernel.mul_(rows).mul_(columns)
    return kernel.div_(kernel.amax((1, 2), keepdim=True))
