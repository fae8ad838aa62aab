"""TIM and alpha-TIM: prototypes that maximize the mutual information between queries and their predicted classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shotproof.core.errors import InputError
from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional.feature_rows import class_membership, mean_weights
from shotproof.functional.task_rows import (
    COLLAPSE,
    VARIANT,
    Variant,
    centered_rows,
    distance_scale,
    distances_to_means,
)
from shotproof.learners.heads.inductive.gradient_descent import Adam
from shotproof.learners.method import Method

if TYPE_CHECKING:
    from torch import Tensor

LEAST_SHARE = 1e-12
WEIGHTS = "weights of the cross-entropy of the support, of the marginal and of the conditional entropy of the queries"
_SPREAD = 4.0  # spread of half squared distances over classes with variant='anywhere'


@dataclass(frozen=True)
class Tim(Method):
    """Score: log p, with p = softmax(-temperature / 2 |x - w|^2) on rows of length 1.

    w starts as the class means of the support. `steps` of Adam minimize, with the three `weights`, the cross-entropy of
    the support, minus the marginal entropy of the queries (of their mean p), plus their conditional entropy (the mean
    entropy of p): the last two are the negative mutual information.

    This is TIM-GD, with 1000 steps as in the paper's evaluation. The marginal entropy favors balanced queries.
    """

    about = "prototypes that maximize mutual information, by gradient descent"
    paper = "Boudiaf et al., Transductive Information Maximization for Few-Shot Learning, NeurIPS 2020"
    example = "tim(steps=100)"
    family = "transductive"
    balanced = True

    steps: int = option(1000, "steps of Adam", least=0)
    temperature: float = option(15.0, "factor of the squared distances", above=0)
    rate: float = option(1e-4, "learning rate of Adam", above=0)
    weights: tuple[float, float, float] = option((0.1, 1.0, 0.1), WEIGHTS, least=0)

    def peak_floats_per_task(self, way: int, support: int, query: int, dims: int) -> int:
        """Count the rows, raw and scaled to length 1, in float32."""
        return (support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Optimize with the closed-form gradient, in float64 if the features are float64, else in float32."""
        dtype = torch.float64 if support.dtype == torch.float64 else torch.float32
        rows = self.unit_rows(torch.cat([support, query], 1)).to(dtype)
        count, target = labels.shape[1], class_membership(labels, way).to(dtype)
        centroids = mean_weights(labels, way, rows.shape[1]).to(dtype) @ rows
        optimizer = Adam(centroids, self.rate)
        temperature = self.task_temperature(rows[:, :count], labels, rows[:, count:], way)
        for _ in range(self.steps):
            logits = _logits(centroids, rows, temperature)
            p = logits.softmax(1)
            gradient = torch.empty_like(p)  # with respect to the logits
            torch.sub(p[..., :count], target, out=gradient[..., :count]).mul_(self.weights[0] / count)
            query_p = p[..., count:]
            query_gradient = self.gradient_in_p(query_p)
            gradient[..., count:] = query_p * (query_gradient - (query_p * query_gradient).sum(1, keepdim=True))
            gradient *= temperature
            optimizer.step((gradient @ rows).addcmul_(gradient.sum(2, keepdim=True), centroids, value=-1))
        return _logits(centroids, rows, temperature)[..., count:].log_softmax(1).mT

    def unit_rows(self, rows: Tensor) -> Tensor:
        """Scale rows [B, n, d] to length 1."""
        dtype = torch.float64 if rows.dtype == torch.float64 else torch.float32
        return torch.nn.functional.normalize(rows.to(dtype), dim=-1)

    def task_temperature(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> float | Tensor:
        """Return the factor of the squared distances: a number, or one per task [B, 1, 1]."""
        return self.temperature

    def gradient_in_p(self, p: Tensor) -> Tensor:
        """Compute the gradient of the queries' loss with respect to p [B, way, m], up to a constant per query."""
        _, marginal, conditional = self.weights
        marginal_gradient = p.mean(2, keepdim=True).clamp_min_(LEAST_SHARE).log_()
        return (marginal * marginal_gradient - conditional * p.clamp_min(LEAST_SHARE).log_()) / p.shape[2]


def _logits(centroids: Tensor, rows: Tensor, temperature: float | Tensor) -> Tensor:
    """Compute temperature (w x - |w|^2 / 2), [B, way, rows]; |x|^2 is left out, as it is the same for all classes."""
    squares = centroids.square().sum(2, keepdim=True)
    if isinstance(temperature, torch.Tensor):
        return torch.baddbmm(squares, centroids, rows.mT, beta=-0.5).mul_(temperature)
    return torch.baddbmm(squares, centroids, rows.mT, beta=-temperature / 2, alpha=temperature)


@dataclass(frozen=True)
class AlphaTim(Tim):
    """TIM with Tsallis entropies (1 - sum p^alpha) / (alpha - 1), for tasks with unbalanced queries.

    The marginal entropy has alpha `marginal_alpha`, the conditional entropy `conditional_alpha`; other options as in
    `tim`. The cross-entropy of the support is Shannon's, as in the paper's configuration.

    If classes are closer than in the paper (cosines near 1, many noisy dimensions), predictions start near uniform and
    may all collapse into few classes. With `variant='anywhere'` rows of length 1 are centered on their task's mean, and
    each task has a temperature that fits the spread of its distances; `temperature` is then ignored.
    """

    about = "TIM with Tsallis entropies, for unbalanced queries"
    paper = "Veilleux et al., Realistic Evaluation of Transductive Few-Shot Learning, NeurIPS 2021"
    example = "alpha-tim(steps=100)"

    weights: tuple[float, float, float] = option((1.0, 1.0, 1.0), WEIGHTS, least=0)
    marginal_alpha: float = option(7.0, "alpha of the marginal entropy, other than 1", above=0)
    conditional_alpha: float = option(5.0, "alpha of the conditional entropy, other than 1", above=0)
    variant: Variant = option("published", VARIANT)
    balanced = False
    collapse_help = f"{COLLAPSE}, or a higher temperature"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("marginal_alpha", "conditional_alpha"):
            if getattr(self, name) == 1:
                reason = "expected a number other than 1, for which the entropy is Shannon's: use tim"
                raise InputError(f"method 'alpha-tim': {name}: {reason}")

    def unit_rows(self, rows: Tensor) -> Tensor:
        """Scale rows [B, n, d] to length 1, centered with `variant='anywhere'`."""
        return centered_rows(rows) if self.variant == "anywhere" else super().unit_rows(rows)

    def task_temperature(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> float | Tensor:
        """Return the factor of the squared distances: a number, or one per task [B, 1, 1]."""
        if self.variant == "published":
            return self.temperature
        return distance_scale(distances_to_means(support, labels, query, way), _SPREAD)

    def gradient_in_p(self, p: Tensor) -> Tensor:
        """Compute the gradient of the queries' loss with respect to p [B, way, m]."""
        _, marginal, conditional = self.weights
        marginal_gradient = tsallis_gradient(p.mean(2, keepdim=True), self.marginal_alpha)
        return (conditional * tsallis_gradient(p, self.conditional_alpha) - marginal * marginal_gradient) / p.shape[2]


def tsallis_gradient(p: Tensor, alpha: float) -> Tensor:
    """Compute the derivative of (1 - sum p^alpha) / (alpha - 1) with respect to p."""
    return p.clamp_min(1e-12).pow_(alpha - 1).mul_(-alpha / (alpha - 1))
