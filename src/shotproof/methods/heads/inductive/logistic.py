"""Multinomial logistic regression on rows of length 1, solved exactly."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.shared.gram import GramBlocks, GramMethod, one_hot, unit_rows
from shotproof.models.scoring.logistic_regression import fit

MOST_C = 1e9  # beyond it float64 cannot tell the loss from the penalty


@dataclass(frozen=True)
class LogisticRegression(GramMethod):
    """Score: the logits of the W and b that minimize |W|^2 / 2 + C sum of cross-entropies, b unpenalized.

    The optimum is that of scikit-learn's LogisticRegression(C=...) on rows scaled to length 1, as in RFS.
    """

    about = "logistic regression on rows of length 1"
    paper = "Tian et al., Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, 2020 (RFS)"
    example = "logistic(C=10)"

    C: float = option(1.0, "weight of the loss beside the penalty on the weights", above=0, most=MOST_C)

    def scores_from_gram(self, gram: GramBlocks, labels: Tensor, way: int) -> Tensor:
        """W = sum of a_i s_i over the support rows, so the logits are the query kernel times a, plus b."""
        kernel, query_kernel = unit_rows(gram)
        weights, bias = fit(kernel, one_hot(labels, way), self.C)
        return query_kernel @ weights + bias
