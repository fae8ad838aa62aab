"""alpha-TIM: TIM with entropies that tolerate unequal numbers of queries per class."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.methods.heads.transductive.tim import WEIGHTS, Tim


@dataclass(frozen=True)
class AlphaTim(Tim):
    """As `tim`, with Tsallis entropies (1 - sum p^alpha) / (alpha - 1) of the mean p and of each query's p.

    The alpha of the former is `marginal_alpha`, that of the latter `conditional_alpha`; other options as there. The
    cross-entropy of the support is Shannon's, as in the paper's configuration.
    """

    about = "TIM with entropies for unbalanced queries"
    paper = "Veilleux et al., Realistic Evaluation of Transductive Few-Shot Learning, NeurIPS 2021"
    example = "alpha-tim(steps=100)"

    weights: tuple[float, float, float] = option((1.0, 1.0, 1.0), WEIGHTS, least=0)
    marginal_alpha: float = option(7.0, "alpha of the mean answer's entropy, other than 1", above=0)
    conditional_alpha: float = option(5.0, "alpha of each answer's entropy, other than 1", above=0)
    balanced = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("marginal_alpha", "conditional_alpha"):
            if getattr(self, name) == 1:
                reason = "expected a number other than 1, where the entropy is Shannon's: use tim"
                raise InputError(f"method 'alpha-tim': {name}: {reason}")

    def query_slope(self, p: Tensor) -> Tensor:
        """The slope of the queries' part of the loss in p [B, way, m]."""
        _, marginal, conditional = self.weights
        of_mean = tsallis_slope(p.mean(2, keepdim=True), self.marginal_alpha)
        return (conditional * tsallis_slope(p, self.conditional_alpha) - marginal * of_mean) / p.shape[2]


def tsallis_slope(p: Tensor, alpha: float) -> Tensor:
    """The slope of (1 - sum p^alpha) / (alpha - 1) in p."""
    return p.clamp_min(1e-12).pow_(alpha - 1).mul_(-alpha / (alpha - 1))
