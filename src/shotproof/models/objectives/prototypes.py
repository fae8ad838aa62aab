"""ProtoNet, Meta-Baseline and FEAT: nearest class mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means, cosine_scores, squared_distances
from shotproof.functional.local_maps import rows_by_class
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, trained_by

ATTENTION_DROPOUT = 0.1


@dataclass(frozen=True)
class ProtoNet(TaskObjective):
    """Cross-entropy of minus the squared Euclidean distances from queries to class means, divided by `temperature`."""

    about = "tasks: nearest class mean, Euclidean"
    paper = "Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, 2017"
    example = "protonet(temperature=64)"
    settings = trained_by(optimizer="adam", lr=1e-3, schedule="step", milestones=(20, 40, 60, 80), decay=0.5)

    temperature: float = option(1.0, "divisor of the squared distances", above=0)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute minus the squared distances to the class means, divided by the temperature."""
        return -squared_distances(query, class_means(support, labels, way)) / self.temperature


@dataclass(frozen=True)
class MetaBaseline(TaskObjective):
    """Cross-entropy of cosines with class means, times a learned scale.

    Training starts from a model that classifies the training classes (`baseline`, `rfs`). Accuracy on training classes
    may keep rising while that on new classes falls, so the model with the best validation accuracy is kept.
    """

    about = "tasks: cosines with class means, times a learned scale; starts from a pretrained model"
    paper = "Chen, Liu, Xu, Darrell and Wang, Meta-Baseline, 2021"
    example = "meta-baseline(scale=5)"
    settings = trained_by(shot=1, epochs=20, tasks=800, tasks_per_update=4, optimizer="sgd", lr=1e-3)

    scale: float = option(10.0, "initial factor of the cosines", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Initialize the scale."""
        return nn.ParameterDict({"scale": torch.tensor(self.scale)})

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the scaled cosines."""
        scale: Tensor = net.head.get_parameter("scale")
        return scale * cosine_scores(support, labels, query, way)


@dataclass(frozen=True)
class Feat(TaskObjective):
    """Cross-entropy of minus squared distances to class means adapted by a learned self-attention.

    A second loss, weighted by `balance`, compares all items of a task with the class means after the same attention
    among the items of each class. Training starts from a pretrained model; the attention has ten times its learning
    rate.
    """

    about = "tasks: class means adapted by self-attention; starts from a pretrained model"
    paper = "Ye, Hu, Zhan and Sha, Few-Shot Learning via Embedding Adaptation with Set-to-Set Functions, 2020"
    example = "feat(temperature=32)"
    # Releases of the published code differ; these settings are a choice among them, not checked against the paper.
    settings = trained_by(
        epochs=200,
        tasks=100,
        tasks_per_update=1,
        optimizer="sgd",
        lr=2e-4,
        schedule="step",
        milestones=(40, 80, 120, 160),
        decay=0.5,
    )

    temperature: float = option(64.0, "divisor of the squared distances", above=0)
    balance: float = option(0.1, "weight of the loss with attention among the items of each class", least=0)
    balance_temperature: float = option(32.0, "divisor of the squared distances in the second loss", above=0)
    dropout: float = option(0.5, "fraction of the attention's output dropped in training", least=0, most=0.9)
    head_rate: float = option(10.0, "factor of the attention's learning rate", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the self-attention."""
        return SelfAttention(backbone.dim, self.dropout)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute minus the distances to the adapted means."""
        return -squared_distances(query, net.head(class_means(support, labels, way))) / self.temperature

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the cross-entropy of the queries plus that of all items with the means of adapted class items."""
        support, query = self.encode_batch(net, batch)
        scores = self.scores(net, support, batch.support_labels, query, batch.way)
        rows, labels = torch.cat([support, query], 1), torch.cat([batch.support_labels, batch.query_labels], 1)
        index, present = rows_by_class(labels, batch.way)
        task = torch.arange(len(rows), device=rows.device)[:, None, None]
        adapted = net.head(rows[task, index].flatten(0, 1), present.flatten(0, 1)).unflatten(0, index.shape[:2])
        mask = present.unsqueeze(-1)
        means = (adapted * mask).sum(2) / mask.sum(2)
        reverse = -squared_distances(rows, means) / self.balance_temperature
        return self.task_loss(scores, batch.query_labels) + self.balance * self.task_loss(reverse, labels)

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """Return the parameter groups; the attention has a higher learning rate than the backbone."""
        return [(list(net.backbone.parameters()), 1.0), (list(net.head.parameters()), self.head_rate)]


class SelfAttention(nn.Module):
    """Self-attention over sets of rows [b, k, d], with a residual connection and layer norm; order does not matter."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.out = nn.Linear(dim, dim)
        for layer in (self.query, self.key, self.value, self.out):
            nn.init.normal_(layer.weight, std=1 / math.sqrt(dim))
        self.norm = nn.LayerNorm(dim)
        self.attention_dropout, self.dropout = nn.Dropout(ATTENTION_DROPOUT), nn.Dropout(dropout)

    def forward(self, rows: Tensor, present: Tensor | None = None) -> Tensor:
        """Return the adapted rows; rows that are not `present`, [b, k], are masked out."""
        weights = self.query(rows) @ self.key(rows).mT / math.sqrt(rows.shape[-1])
        if present is not None:
            weights = weights.masked_fill(~present.unsqueeze(1), -torch.inf)
        attended = self.attention_dropout(weights.softmax(-1)) @ self.value(rows)
        adapted: Tensor = self.norm(rows + self.dropout(self.out(attended)))
        return adapted
