"""TIM: prototypes moved until the queries are told apart surely and all classes are used."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.errors import InputError
from shotproof.methods.adam import Adam
from shotproof.methods.gram import mean_weights, members
from shotproof.methods.method import Method, require_between, require_positive

LEAST_SHARE = 1e-12


@dataclass
class Tim(Method):
    """Score: log p, with p = softmax(-temperature / 2 |x - w|^2) on rows of length 1.

    From the support means, `steps` of Adam on w minimise, with the three `weights`, the cross-entropy of the support,
    minus the entropy of the queries' mean p, plus the mean entropy of the queries' p.

    Boudiaf, Masud, Rony, Dolz, Piantanida, Ben Ayed, Transductive Information Maximization for Few-Shot Learning,
    NeurIPS 2020 (TIM-GD; 1000 steps as in its evaluation). The entropy of the mean p prefers balanced queries.
    """

    steps: int = 1000
    temperature: float = 15.0
    rate: float = 1e-4
    weights: tuple[float, float, float] = (0.1, 1.0, 0.1)

    about = "prototypes by mutual information, gradient descent"
    family = "transductive"
    balanced = True

    def __post_init__(self) -> None:
        require_between("steps", self.steps, 0, kind=int)
        require_positive("temperature", self.temperature, float)
        require_positive("rate", self.rate, float)
        if not isinstance(self.weights, (tuple, list)) or len(self.weights) != 3:
            raise InputError(f"weights: expected three numbers, e.g. (0.1, 1.0, 0.1), found {self.weights!r}")
        for weight in self.weights:
            require_between("weights", weight, 0)

    def floats_a_task(self, way: int, support: int, query: int, dims: int) -> int:
        """The rows as they are and of length 1, in float32."""
        return (support + query) * dims

    def scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The gradient in closed form; in float64 where the features are."""
        dtype = torch.float64 if support.dtype == torch.float64 else torch.float32
        rows = torch.nn.functional.normalize(torch.cat([support, query], 1).to(dtype), dim=-1)
        count, target = labels.shape[1], members(labels, way).to(dtype)
        centroids = mean_weights(labels, way, rows.shape[1]).to(dtype) @ rows
        optimiser = Adam(centroids, self.rate)
        for _ in range(self.steps):
            logits = self._logits(centroids, rows)
            p = logits.softmax(1)
            slope = torch.empty_like(p)  # of the loss in the logits
            torch.sub(p[..., :count], target, out=slope[..., :count]).mul_(self.weights[0] / count)
            of_query = p[..., count:]
            wanted = self.query_slope(of_query)
            slope[..., count:] = of_query * (wanted - (of_query * wanted).sum(1, keepdim=True))
            slope *= self.temperature
            optimiser.step((slope @ rows).addcmul_(slope.sum(2, keepdim=True), centroids, value=-1))
        return self._logits(centroids, rows)[..., count:].log_softmax(1).mT

    def query_slope(self, p: Tensor) -> Tensor:
        """The slope of the queries' part of the loss in p [B, way, m], up to a constant a query."""
        _, marginal, conditional = self.weights
        of_mean = p.mean(2, keepdim=True).clamp_min_(LEAST_SHARE).log_()
        return (marginal * of_mean - conditional * p.clamp_min(LEAST_SHARE).log_()) / p.shape[2]

    def _logits(self, centroids: Tensor, rows: Tensor) -> Tensor:
        """temperature (w x - |w|^2 / 2), [B, way, rows]: |x|^2 is the same for all classes."""
        squares = centroids.square().sum(2, keepdim=True)
        return torch.baddbmm(squares, centroids, rows.mT, beta=-self.temperature / 2, alpha=self.temperature)
