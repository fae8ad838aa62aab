"""alpha-TIM: TIM with entropies that tolerate unequal numbers of queries a class."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.errors import InputError
from shotproof.methods.method import require_positive
from shotproof.methods.tim import Tim


@dataclass
class AlphaTim(Tim):
    """As `tim`, with Tsallis entropies (1 - sum p^alpha) / (alpha - 1) of the mean p and of each query's p.

    The alpha of the former is `marginal_alpha`, that of the latter `conditional_alpha`; other options as there.

    Veilleux, Boudiaf, Piantanida, Ben Ayed, Realistic Evaluation of Transductive Few-Shot Learning, NeurIPS 2021. The
    cross-entropy of the support is Shannon's, as in its configuration.
    """

    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    marginal_alpha: float = 7.0
    conditional_alpha: float = 5.0

    about = "TIM with entropies for unbalanced queries"
    balanced = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("marginal_alpha", "conditional_alpha"):
            require_positive(name, getattr(self, name), float)
            if getattr(self, name) == 1:
                raise InputError(f"{name}: expected a number other than 1, where the entropy is Shannon's: use tim")

    def query_slope(self, p: Tensor) -> Tensor:
        """The slope of the queries' part of the loss in p [B, way, m]."""
        _, marginal, conditional = self.weights
        of_mean = tsallis_slope(p.mean(2, keepdim=True), self.marginal_alpha)
        return (conditional * tsallis_slope(p, self.conditional_alpha) - marginal * of_mean) / p.shape[2]


def tsallis_slope(p: Tensor, alpha: float) -> Tensor:
    """The slope of (1 - sum p^alpha) / (alpha - 1) in p."""
    return p.clamp_min(1e-12).pow_(alpha - 1).mul_(-alpha / (alpha - 1))
