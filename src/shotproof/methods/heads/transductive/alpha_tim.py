"""alpha-TIM: TIM with entropies that tolerate unequal numbers of queries per class."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.methods.heads.transductive.tim import WEIGHTS, Tim
from shotproof.methods.shared.any_features import (
    COLLAPSE,
    VARIANT,
    Variant,
    centered_rows,
    distances_to_means,
    scale_of,
)

_DIFFER = 4.0  # how much half squared distances differ between classes where the features may be any


@dataclass(frozen=True)
class AlphaTim(Tim):
    """As `tim`, with Tsallis entropies (1 - sum p^alpha) / (alpha - 1) of the mean p and of each query's p.

    The alpha of the former is `marginal_alpha`, that of the latter `conditional_alpha`; other options as there. The
    cross-entropy of the support is Shannon's, as in the paper's configuration.

    Where classes are close beside the paper's (cosines near 1, many noisy dimensions), answers start undecided and may
    all fall into few classes. With `variant='anywhere'` rows of length 1 are centered on their task's mean, and each
    task has a temperature by how much its distances differ; `temperature` has no say then.
    """

    about = "TIM with entropies for unbalanced queries"
    paper = "Veilleux et al., Realistic Evaluation of Transductive Few-Shot Learning, NeurIPS 2021"
    example = "alpha-tim(steps=100)"

    weights: tuple[float, float, float] = option((1.0, 1.0, 1.0), WEIGHTS, least=0)
    marginal_alpha: float = option(7.0, "alpha of the mean answer's entropy, other than 1", above=0)
    conditional_alpha: float = option(5.0, "alpha of each answer's entropy, other than 1", above=0)
    variant: Variant = option("published", VARIANT)
    balanced = False
    collapse_help = f"{COLLAPSE}, or a higher temperature"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("marginal_alpha", "conditional_alpha"):
            if getattr(self, name) == 1:
                reason = "expected a number other than 1, where the entropy is Shannon's: use tim"
                raise InputError(f"method 'alpha-tim': {name}: {reason}")

    def unit_rows(self, rows: Tensor) -> Tensor:
        """Rows [B, n, d] of length 1, centered first where the features may be any."""
        return centered_rows(rows) if self.variant == "anywhere" else super().unit_rows(rows)

    def temperature_of(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> float | Tensor:
        """The factor of the squared distances: a number, or one per task [B, 1, 1]."""
        if self.variant == "published":
            return self.temperature
        return scale_of(distances_to_means(support, labels, query, way), _DIFFER)

    def query_slope(self, p: Tensor) -> Tensor:
        """The slope of the queries' part of the loss in p [B, way, m]."""
        _, marginal, conditional = self.weights
        of_mean = tsallis_slope(p.mean(2, keepdim=True), self.marginal_alpha)
        return (conditional * tsallis_slope(p, self.conditional_alpha) - marginal * of_mean) / p.shape[2]


def tsallis_slope(p: Tensor, alpha: float) -> Tensor:
    """The slope of (1 - sum p^alpha) / (alpha - 1) in p."""
    return p.clamp_min(1e-12).pow_(alpha - 1).mul_(-alpha / (alpha - 1))
