"""The multi-class support vector machine of MetaOptNet, solved exactly in its dual form."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, one_hot
from shotproof.models.scoring.support_vectors import solve_dual


@dataclass(frozen=True)
class SupportVectorMachine(GramMethod):
    """Score: x S^T A with the A [n, way] that minimizes tr(A^T (S S^T + I) A) / 2 - sum_i A[i, y_i].

    Each row of A sums to 0, and A[i, c] is at most C where c = y_i, at most 0 elsewhere: Crammer and Singer's machine.
    The paper's solver stops after 15 steps; this one takes up to `iterations` steps of ADMM, of which 50 to 100 suffice
    on common features.
    """

    about = "MetaOptNet's multi-class support vector machine (Crammer and Singer)"
    paper = "Lee et al., Meta-Learning with Differentiable Convex Optimization, 2019 (MetaOptNet)"
    example = "svm(C=1)"

    C: float = option(0.1, "weight of the errors beside the penalty on the weights", above=0)
    iterations: int = option(2000, "most steps of the solver", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """The dual weights applied to the queries' inner products."""
        weights, unfinished = solve_dual(gram.support, one_hot(labels, way), self.C, self.iterations)
        for _ in range(unfinished):  # one per task, so that the count does not depend on the batch
            warnings.warn(f"no convergence after {self.iterations} steps", RuntimeWarning, stacklevel=2)
        return gram.query @ weights
