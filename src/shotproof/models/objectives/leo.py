"""LEO: inner loop in a latent space, decoded to the weights of a linear head."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.func import grad
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.inner_loop import normalized_by
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, trained_by

LEAST_DEVIATION = 1e-10


class LeoHead(nn.Module):
    """Encoder, relation network, decoder, and a learning rate for each dimension."""

    def __init__(self, dim: int, options: Leo) -> None:
        super().__init__()
        code = options.code
        self.drop = nn.Dropout(options.dropout)
        self.encoder = nn.Linear(dim, code, bias=False)
        layers = [nn.Linear(2 * code, 2 * code, bias=False) for _ in range(3)]
        self.relation = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
        self.decoder = nn.Linear(code, 2 * dim, bias=False)
        self.code_rate = nn.Parameter(torch.full((code,), options.code_rate))
        self.weight_rate = nn.Parameter(torch.full((dim,), options.weight_rate))

    def encode(self, support: Tensor, labels: Tensor, way: int) -> tuple[Tensor, Tensor]:
        """Compute mean and standard deviation of the code of each class, [B, way, code], from vectors [B, n, d]."""
        codes = self.encoder(self.drop(support))
        count = codes.shape[1]
        pairs = torch.cat(
            [codes.unsqueeze(2).expand(-1, -1, count, -1), codes.unsqueeze(1).expand(-1, count, -1, -1)], -1
        )
        mean, spread = class_means(self.relation(pairs).mean(2), labels, way).chunk(2, -1)
        return mean, _deviation(spread, 0.0)

    def decode(self, code: Tensor) -> tuple[Tensor, Tensor]:
        """Compute mean and standard deviation of the weights of each class, [B, way, d]."""
        mean, spread = self.decoder(code).chunk(2, -1)
        return mean, _deviation(spread, math.sqrt(2 / (code.shape[1] + mean.shape[-1])))


@dataclass(frozen=True)
class Leo(TaskObjective):
    """Cross-entropy of the queries after gradient steps on the latent code of each class, then on its decoded weights.

    Regularizers: the code's divergence from a standard normal distribution, the distance from the initial code to the
    adapted one, and the correlations of the decoder's rows. In training, codes and weights are sampled; in evaluation,
    they are the means.
    """

    about = "tasks: inner loop on a latent code that is decoded to a head; start from a model"
    paper = "Rusu et al., Meta-Learning with Latent Embedding Optimization, 2019"
    example = "leo(frozen=False)"
    settings = trained_by(optimizer="adam", lr=5e-4, weight_decay=1e-8, schedule="cosine", clip=0.1)

    code: int = option(64, "dimensions of a class's code", least=1)
    code_steps: int = option(5, "gradient steps on the codes", least=0)
    code_rate: float = option(1.0, "initial learning rate of the codes; it is learned", above=0)
    weight_steps: int = option(5, "gradient steps on the decoded weights", least=0)
    weight_rate: float = option(1e-3, "initial learning rate of the weights; it is learned", above=0)
    dropout: float = option(0.5, "fraction of features zeroed in training", least=0, most=0.9)
    divergence: float = option(1e-3, "weight of the codes' divergence from a normal distribution", least=0)
    distance: float = option(1e-9, "weight of the distance from the initial codes to the adapted ones", least=0)
    orthogonality: float = option(1e-3, "weight of the correlations of the decoder's rows", least=0)
    frozen: bool = option(True, "whether the backbone is frozen")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build encoder, relation network, decoder and learning rates."""
        return LeoHead(backbone.dim, self)

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """Return the parameters of the head, and of the backbone unless it is frozen."""
        return [([*(net.head if self.frozen else net).parameters()], 1.0)]

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the cross-entropy plus the three regularizers."""
        head = net.head
        assert isinstance(head, LeoHead)
        if self.frozen:
            with torch.no_grad(), normalized_by(net, "running"):
                support, query = self.encode_batch(net, batch)
        else:
            support, query = self.encode_batch(net, batch)
        mean, deviation = head.encode(support, batch.support_labels, batch.way)
        code_noise = _draw_normal(mean, generator)
        initial_code = mean + deviation * code_noise
        weight_noise = _draw_normal(support.new_empty(len(support), batch.way, support.shape[2]), generator)
        weights, adapted_code = self._adapt(head, initial_code, support, batch.support_labels, weight_noise)
        loss = self.task_loss(query @ weights.mT, batch.query_labels)
        # log q - log p of the sampled code; constants cancel.
        divergence = (initial_code.square() - code_noise.square()) / 2 - deviation.log()
        rows = functional.normalize(head.decoder.weight, dim=1)
        correlation = rows @ rows.T - torch.eye(len(rows), device=rows.device)
        return (
            loss
            + self.divergence * divergence.mean()
            + self.distance * (initial_code - adapted_code.detach()).square().mean()
            + self.orthogonality * correlation.square().mean()
        )

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the logits from the means, without sampling."""
        head = net.head
        assert isinstance(head, LeoHead)
        weights, _ = self._adapt(head, head.encode(support, labels, way)[0], support, labels, None)
        return query @ weights.mT

    def _adapt(
        self, head: LeoHead, code: Tensor, support: Tensor, labels: Tensor, noise: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Take all steps; return the weights [B, way, d] and the codes they were decoded from."""

        def decode_weights(codes: Tensor) -> Tensor:
            mean, deviation = head.decode(codes)
            return mean if noise is None else mean + deviation * noise

        def loss(weights: Tensor) -> Tensor:
            """Sum the mean losses of the tasks, so that no task's step depends on the number of tasks."""
            entropy = functional.cross_entropy((support @ weights.mT).flatten(0, 1), labels.flatten(), reduction="sum")
            return entropy / support.shape[1]

        for _ in range(self.code_steps):
            code = code - head.code_rate * grad(lambda codes: loss(decode_weights(codes)))(code)
        weights = decode_weights(code)
        for _ in range(self.weight_steps):
            weights = weights - head.weight_rate * grad(loss)(weights)
        return weights, code


def _deviation(spread: Tensor, offset: float) -> Tensor:
    return (spread.clamp(max=10).exp() - 1 + offset).clamp(min=LEAST_DEVIATION)


def _draw_normal(like: Tensor, generator: Generator) -> Tensor:
    return torch.randn(like.shape, device=like.device, generator=generator)
