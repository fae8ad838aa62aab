"""VERSA: networks that predict the weights of each class's classifier, with their variance, from the class mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, trained_by

LOG_VARIANCES = (-10.0, 10.0)
START = -6.0  # initial log-variance: at 0, the noise of a score would be many times the score


@dataclass(frozen=True)
class Versa(TaskObjective):
    """Minus the logarithm of the mean probability of the query's class over samples of a Gaussian linear classifier.

    Mean and variance of a class's weights and bias are predicted from the mean of its projected support rows, by
    networks that all classes share. Samples are drawn of the scores, not of the weights. Evaluation draws no samples:
    it uses MacKay's approximation of the mean over samples, which divides a score by the root of 1 + pi / 8 times its
    variance.
    """

    about = "tasks: weights of a linear classifier, with their variance, predicted from the class means"
    paper = "Gordon et al., Meta-Learning Probabilistic Inference for Prediction, 2019"
    example = "versa(samples=20)"
    settings = trained_by(optimizer="adam", lr=1e-4, weight_decay=0.0, tasks_per_update=4, tasks=4000)

    samples: int = option(10, "number of samples of the scores in training", least=1)
    dim: int = option(256, "dimensions of a projected row", least=1)
    dropout: float = option(0.5, "fraction of a projected row dropped in training", least=0, most=0.9)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the projection and the four networks."""
        return _Head(backbone.dim, self.dim, self.dropout)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the mean scores, shrunk according to their variance."""
        mean, variance = cast("_Head", net.head).moments(support, labels, query, way)
        return mean / (1 + math.pi / 8 * variance).sqrt()

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute minus the log of the mean probability over samples, which are the first axis: [L, B, m, way]."""
        support, query = self.encode_batch(net, batch)
        mean, variance = cast("_Head", net.head).moments(support, batch.support_labels, query, batch.way)
        noise = torch.randn((self.samples, *mean.shape), generator=generator, device=mean.device)
        log_probabilities = (mean + variance.sqrt() * noise).log_softmax(-1)
        likelihood = log_probabilities.logsumexp(0) - math.log(self.samples)
        return functional.nll_loss(likelihood.flatten(0, 1), batch.query_labels.flatten())


class _Head(nn.Module):
    """Projection, and the networks that predict a classifier from a class mean."""

    def __init__(self, inputs: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.project = nn.Sequential(
            nn.Linear(inputs, dim, bias=False), nn.BatchNorm1d(dim), nn.ReLU(inplace=True), nn.Dropout(dropout)
        )

        def network(outputs: int) -> nn.Sequential:
            return nn.Sequential(nn.Linear(dim, dim), nn.ELU(), nn.Linear(dim, dim), nn.ELU(), nn.Linear(dim, outputs))

        self.weight, self.weight_log_variance = network(dim), network(dim)
        self.bias, self.bias_log_variance = network(1), network(1)
        for log_variance in (self.weight_log_variance, self.bias_log_variance):
            nn.init.constant_(cast("nn.Linear", log_variance[-1]).bias, START)

    def moments(self, support: Tensor, labels: Tensor, query: Tensor, way: int) -> tuple[Tensor, Tensor]:
        """Compute mean and variance of the scores, [B, m, way] each."""
        rows = torch.cat([support, query], 1)
        rows = self.project(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
        query = rows[:, support.shape[1] :]
        means = class_means(rows[:, : support.shape[1]], labels, way)
        mean = query @ self.weight(means).mT + self.bias(means).mT
        weight_variance = self.weight_log_variance(means).clamp(*LOG_VARIANCES).exp()
        bias_variance = self.bias_log_variance(means).clamp(*LOG_VARIANCES).exp()
        return mean, query.square() @ weight_variance.mT + bias_variance.mT
