"""ProtoNet, Meta-Baseline and FEAT: each query belongs to the nearest class mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means, cosine_scores, squared_distances
from shotproof.functional.local_maps import rows_of_classes
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

    temperature: float = option(1.0, "what squared distances are divided by", above=0)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Minus squared distances to the class means."""
        return -squared_distances(query, class_means(support, labels, way)) / self.temperature


@dataclass(frozen=True)
class MetaBaseline(TaskObjective):
    """Cross-entropy of cosines with class means, times a learned scale.

    It starts from a model that was trained to classify the training classes (`baseline`, `rfs`). Accuracy on training
    classes may go on rising while that on new ones falls: the best validation is kept.
    """

    about = "tasks: cosines with class means, times a learned scale; starts from a pretrained model"
    paper = "Chen, Liu, Xu, Darrell and Wang, Meta-Baseline, 2021"
    example = "meta-baseline(scale=5)"
    settings = trained_by(shot=1, epochs=20, tasks=800, tasks_per_update=4, optimizer="sgd", lr=1e-3)

    scale: float = option(10.0, "factor of the cosines at the start", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The scale."""
        return nn.ParameterDict({"scale": torch.tensor(self.scale)})

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scaled cosines."""
        scale: Tensor = net.head.get_parameter("scale")
        return scale * cosine_scores(support, labels, query, way)


@dataclass(frozen=True)
class Feat(TaskObjective):
    """Cross-entropy of minus squared distances to class means that a learned self-attention has changed.

    A second term, weighted by `balance`, compares all items of a task with the means of their classes after the same
    attention among the items of each class. It starts from a pretrained model; the attention learns ten times as fast.
    """

    about = "tasks: class means changed by self-attention; starts from a pretrained model"
    paper = "Ye, Hu, Zhan and Sha, Few-Shot Learning via Embedding Adaptation with Set-to-Set Functions, 2020"
    example = "feat(temperature=32)"
    # The releases of the published code differ: these are a choice among them, not checked against the paper.
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

    temperature: float = option(64.0, "what squared distances are divided by", above=0)
    balance: float = option(0.1, "weight of the attention among the items of each class", least=0)
    balance_temperature: float = option(32.0, "what squared distances of that term are divided by", above=0)
    dropout: float = option(0.5, "share of the attention's output that is dropped in training", least=0, most=0.9)
    head_rate: float = option(10.0, "how many times as fast the attention learns", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The self-attention."""
        return SelfAttention(backbone.dim, self.dropout)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Minus the distances to the changed means."""
        return -squared_distances(query, net.head(class_means(support, labels, way))) / self.temperature

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """The cross-entropy of queries, and that of all items with the means of their changed classes."""
        support, query = self.seen(net, batch)
        scores = self.scores(net, support, batch.support_labels, query, batch.way)
        rows, labels = torch.cat([support, query], 1), torch.cat([batch.support_labels, batch.query_labels], 1)
        index, present = rows_of_classes(labels, batch.way)
        task = torch.arange(len(rows), device=rows.device)[:, None, None]
        changed = net.head(rows[task, index].flatten(0, 1), present.flatten(0, 1)).unflatten(0, index.shape[:2])
        kept = present.unsqueeze(-1)
        means = (changed * kept).sum(2) / kept.sum(2)
        reverse = -squared_distances(rows, means) / self.balance_temperature
        return self.task_loss(scores, batch.query_labels) + self.balance * self.task_loss(reverse, labels)

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """The attention learns faster than the backbone."""
        return [(list(net.backbone.parameters()), 1.0), (list(net.head.parameters()), self.head_rate)]


class SelfAttention(nn.Module):
    """Sets of rows [b, k, d] to rows that have seen the others, with a shortcut and layer norm; order has no say."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.out = nn.Linear(dim, dim)
        for layer in (self.query, self.key, self.value, self.out):
            nn.init.normal_(layer.weight, std=1 / math.sqrt(dim))
        self.norm = nn.LayerNorm(dim)
        self.attention_dropout, self.dropout = nn.Dropout(ATTENTION_DROPOUT), nn.Dropout(dropout)

    def forward(self, rows: Tensor, present: Tensor | None = None) -> Tensor:
        """The changed rows; those that are not `present`, [b, k], are seen by none."""
        weights = self.query(rows) @ self.key(rows).mT / math.sqrt(rows.shape[-1])
        if present is not None:
            weights = weights.masked_fill(~present.unsqueeze(1), -torch.inf)
        seen = self.attention_dropout(weights.softmax(-1)) @ self.value(rows)
        changed: Tensor = self.norm(rows + self.dropout(self.out(seen)))
        return changed
