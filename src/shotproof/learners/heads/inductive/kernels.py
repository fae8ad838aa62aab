"""Heads on inner products of queries with support rows: regression, support vector machine, neighbors, attention."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.nouns import counted
from shotproof.core.options import option
from shotproof.functional.feature_rows import one_hot
from shotproof.functional.gram import GramBlocks, attention_scores, ridge_weights, unit_rows
from shotproof.functional.logistic_regression import fit
from shotproof.functional.support_vectors import solve_dual
from shotproof.learners.bases import GramMethod

if TYPE_CHECKING:
    from torch import Tensor

MOST_C = 1e9  # above it, the penalty is lost in float64 rounding


@dataclass(frozen=True)
class RidgeRegression(GramMethod):
    """Score: x W with W = S^T (S S^T + penalty I)^-1 Y, without intercept.

    A penalty of 50 suits raw features; on rows of length 1 it is very strong, and 1 is sensible.
    """

    about = "ridge regression to one-hot labels, closed form"
    paper = "Bertinetto et al., Meta-learning with Differentiable Closed-form Solvers, 2019 (R2D2)"
    example = "ridge(penalty=1)"

    penalty: float = option(50.0, "weight of the penalty on the weights", above=0)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Solve the n x n system of the dual by Cholesky factorization."""
        return gram.query @ ridge_weights(gram.support, one_hot(labels, way), self.penalty)


@dataclass(frozen=True)
class LogisticRegression(GramMethod):
    """Score: the logits of the W and b that minimize |W|^2 / 2 + C sum of cross-entropies, b unpenalized.

    The optimum is that of scikit-learn's LogisticRegression(C=...) on rows scaled to length 1, as in RFS.
    """

    about = "logistic regression on rows of length 1"
    paper = "Tian et al., Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, 2020 (RFS)"
    example = "logistic(C=10)"

    C: float = option(1.0, "weight of the loss relative to the penalty on the weights", above=0, most=MOST_C)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Fit in the dual: W sums a_i s_i over the support rows, so logits are the query kernel times a, plus b."""
        kernel, query_kernel = unit_rows(gram)
        weights, bias = fit(kernel, one_hot(labels, way), self.C)
        return query_kernel @ weights + bias


@dataclass(frozen=True)
class SupportVectorMachine(GramMethod):
    """Score: x S^T A with the A [n, way] that minimizes tr(A^T (S S^T + I) A) / 2 - sum_i A[i, y_i].

    Each row of A sums to 0, and A[i, c] is at most C if c = y_i, at most 0 otherwise (Crammer and Singer). The paper's
    solver stops after 15 steps; this one takes up to `iterations` steps of ADMM, of which 50 to 100 suffice on common
    features.
    """

    about = "MetaOptNet's multi-class support vector machine (Crammer and Singer)"
    paper = "Lee et al., Meta-Learning with Differentiable Convex Optimization, 2019 (MetaOptNet)"
    example = "svm(C=1)"

    C: float = option(0.1, "weight of the errors relative to the penalty on the weights", above=0)
    iterations: int = option(2000, "maximum number of steps of the solver", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Apply the dual weights to the inner products of the queries."""
        weights, unfinished = solve_dual(gram.support, one_hot(labels, way), self.C, self.iterations)
        for _ in range(unfinished):  # one per task, so that the count does not depend on the batch
            warnings.warn(f"no convergence after {self.iterations} steps", RuntimeWarning, stacklevel=2)
        return gram.query @ weights


@dataclass(frozen=True)
class NearestNeighbors(GramMethod):
    """Score: the class's votes among the k most similar support rows; ties are broken by summed similarity."""

    about = "k nearest neighbors, cosine"
    example = "knn(k=3)"

    k: int = option(1, "number of neighbors", least=1)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Count votes, and add a fraction of the summed similarity too small to outweigh a vote."""
        if self.k > labels.shape[-1]:
            available = counted(labels.shape[-1], "support item")
            raise InputError(f"method 'knn': k is {self.k}, but a task has only {available}")
        _, similarity = unit_rows(gram)
        # Ties are broken by class, never by row order; rounding makes copies of an item equally similar.
        labels, order = labels.sort(dim=-1, stable=True)
        similarity = similarity.gather(-1, order.unsqueeze(-2).expand_as(similarity)).round(decimals=12)
        nearest, position = similarity.sort(dim=-1, descending=True, stable=True)
        nearest, position = nearest[..., : self.k], position[..., : self.k]
        voters = labels.unsqueeze(-2).expand_as(similarity).gather(-1, position)
        scores = torch.zeros(*similarity.shape[:-1], way, dtype=similarity.dtype, device=similarity.device)
        return scores.scatter_add_(-1, voters, 1 + nearest / (4 * self.k))


@dataclass(frozen=True)
class Matching(GramMethod):
    """Score: the logarithm of the attention that the class's support rows get.

    The attention follows Chen et al. 2019, without the trained context embeddings of Vinyals et al.: the softmax over
    all support rows of `scale` times the cosine, with negative cosines set to 0.
    """

    about = "matching networks without context embeddings: attention over support rows"
    paper = (
        "Vinyals et al., Matching Networks for One Shot Learning, 2016; Chen et al., A Closer Look at Few-shot "
        "Classification, 2019"
    )
    example = "matching(scale=10)"

    scale: float = option(100.0, "factor of the cosines: sharpness of the attention", above=0)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """Compute log(softmax(scale relu(cos)) Y)."""
        _, cosine = unit_rows(gram)
        return attention_scores(cosine, labels, way, self.scale)
