"""TIM and alpha-TIM: prototypes moved until the queries are told apart surely and all classes are used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import mean_weights, members
from shotproof.functional.task_rows import (
    COLLAPSE,
    VARIANT,
    Variant,
    centered_rows,
    distances_to_means,
    scale_of,
)
from shotproof.learners.heads.inductive.gradient_descent import Adam
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor

LEAST_SHARE = 1e-12
WEIGHTS = "weights of the support's loss, of the mean answer's entropy and of each answer's entropy"
_DIFFER = 4.0  # how much half squared distances differ between classes where the features may be any


@dataclass(frozen=True)
class Tim(Method):
    """Score: log p, with p = softmax(-temperature / 2 |x - w|^2) on rows of length 1.

    From the support means, `steps` of Adam on w minimize, with the three `weights`, the cross-entropy of the support,
    minus the entropy of the queries' mean p, plus the mean entropy of the queries' p.

    This is TIM-GD, with 1000 steps as in the paper's evaluation. The entropy of the mean p prefers balanced queries.
    """

    about = "prototypes by mutual information, gradient descent"
    paper = "Boudiaf et al., Transductive Information Maximization for Few-Shot Learning, NeurIPS 2020"
    example = "tim(steps=100)"
    family = "transductive"
    balanced = True

    steps: int = option(1000, "steps of Adam", least=0)
    temperature: float = option(15.0, "factor of the squared distances", above=0)
    rate: float = option(1e-4, "learning rate of Adam", above=0)
    weights: tuple[float, float, float] = option((0.1, 1.0, 0.1), WEIGHTS, least=0)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The rows as they are and of length 1, in float32."""
        return (support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The gradient in closed form; in float64 where the features are."""
        dtype = torch.float64 if support.dtype == torch.float64 else torch.float32
        rows = self.unit_rows(torch.cat([support, query], 1)).to(dtype)
        count, target = labels.shape[1], members(labels, way).to(dtype)
        centroids = mean_weights(labels, way, rows.shape[1]).to(dtype) @ rows
        optimizer = Adam(centroids, self.rate)
        temperature = self.temperature_of(rows[:, :count], labels, rows[:, count:], way)
        for _ in range(self.steps):
            logits = _logits(centroids, rows, temperature)
            p = logits.softmax(1)
            slope = torch.empty_like(p)  # of the loss in the logits
            torch.sub(p[..., :count], target, out=slope[..., :count]).mul_(self.weights[0] / count)
            of_query = p[..., count:]
            wanted = self.query_slope(of_query)
            slope[..., count:] = of_query * (wanted - (of_query * wanted).sum(1, keepdim=True))
            slope *= temperature
            optimizer.step((slope @ rows).addcmul_(slope.sum(2, keepdim=True), centroids, value=-1))
        return _logits(centroids, rows, temperature)[..., count:].log_softmax(1).mT

    def unit_rows(self, rows: Tensor) -> Tensor:
        """Rows [B, n, d] of length 1."""
        dtype = torch.float64 if rows.dtype == torch.float64 else torch.float32
        return torch.nn.functional.normalize(rows.to(dtype), dim=-1)

    def temperature_of(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> float | Tensor:
        """The factor of the squared distances: a number, or one per task [B, 1, 1]."""
        return self.temperature

    def query_slope(self, p: Tensor) -> Tensor:
        """The slope of the queries' part of the loss in p [B, way, m], up to a constant per query."""
        _, marginal, conditional = self.weights
        of_mean = p.mean(2, keepdim=True).clamp_min_(LEAST_SHARE).log_()
        return (marginal * of_mean - conditional * p.clamp_min(LEAST_SHARE).log_()) / p.shape[2]


def _logits(centroids: Tensor, rows: Tensor, temperature: float | Tensor) -> Tensor:
    """temperature (w x - |w|^2 / 2), [B, way, rows]: |x|^2 is the same for all classes."""
    squares = centroids.square().sum(2, keepdim=True)
    if isinstance(temperature, torch.Tensor):
        return torch.baddbmm(squares, centroids, rows.mT, beta=-0.5).mul_(temperature)
    return torch.baddbmm(squares, centroids, rows.mT, beta=-temperature / 2, alpha=temperature)


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
