"""TIM: prototypes moved until the queries are told apart surely and all classes are used."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.method import Method
from shotproof.methods.shared.adam import Adam
from shotproof.methods.shared.gram import mean_weights, members

LEAST_SHARE = 1e-12
WEIGHTS = "weights of the support's loss, of the mean answer's entropy and of each answer's entropy"


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
    if isinstance(temperature, Tensor):
        return torch.baddbmm(squares, centroids, rows.mT, beta=-0.5).mul_(temperature)
    return torch.baddbmm(squares, centroids, rows.mT, beta=-temperature / 2, alpha=temperature)
