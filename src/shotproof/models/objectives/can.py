"""CAN: cross-attention between the maps of class and query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means
from shotproof.functional.local_maps import descriptors, split_queries
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, trained_by


@dataclass(frozen=True)
class CrossAttention(TaskObjective):
    """Cross-entropy of the training classes at each location, plus half that of scaled cosines with attended classes.

    A small learned network computes attention from the correlations between all locations of a class's mean map and all
    locations of the query's map. The loss compares each location of a query separately with the attended class, the
    scores compare the mean over its attended locations.
    """

    about = "tasks: cross-attention between the maps of class and query"
    paper = "Hou, Chang, Ma, Shan and Chen, Cross Attention Network for Few-shot Classification, 2019"
    example = "can(scale=10)"
    needs = "maps"
    settings = trained_by(optimizer="sgd", lr=0.1, nesterov=True, schedule="cosine", tasks_per_update=4)

    scale: float = option(7.0, "factor of the cosines", above=0)
    temperature: float = option(0.025, "temperature of the attention: lower is sharper", above=0)
    task_weight: float = option(0.5, "weight of the task loss relative to that of the training classes", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the attention network and the classifier of the training classes."""
        channels, height, width = backbone.map_shape
        return _Head(channels, height * width, classes, self.temperature)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute scaled cosines between attended classes and attended queries."""
        classes, queries = (descriptors(maps, maps.dtype) for maps in (class_means(support, labels, way), query))
        scores = []
        for chunk in split_queries(queries, numbers_per_query=4 * way * queries.shape[2] ** 2):
            class_attention, query_attention = cast("_Head", net.head)(classes, chunk)
            pooled_class, pooled_query = (
                _attend(class_attention, classes, "way"),
                _attend(query_attention, chunk, "query"),
            )
            scores.append(functional.cosine_similarity(pooled_class, pooled_query, dim=-1))
        return self.scale * torch.cat(scores, 1)

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the loss of the training classes plus that of the tasks, both at every location of a query."""
        head = cast("_Head", net.head)
        support, query = self.encode_batch(net, batch)
        means = class_means(support, batch.support_labels, batch.way)
        classes, queries = (descriptors(maps, maps.dtype) for maps in (means, query))
        class_attention, query_attention = head(classes, queries)
        pooled = functional.normalize(_attend(class_attention, classes, "way"), dim=-1)  # [B, m, way, d]
        cosines = functional.normalize(queries, dim=-1) @ pooled.mT  # [B, m, r, way]; location weights cancel
        labels = batch.query_labels.unsqueeze(-1).expand(cosines.shape[:3])
        task_loss = functional.cross_entropy(self.scale * cosines.flatten(0, 2), labels.flatten())
        # The attention of the query with its own class.
        own_attention = query_attention.gather(
            2, batch.query_labels[..., None, None].expand(-1, -1, 1, query_attention.shape[-1])
        ).squeeze(2)
        logits = head.classifier(queries * own_attention.unsqueeze(-1))
        labels = batch.query_classes.unsqueeze(-1).expand(logits.shape[:3])
        return functional.cross_entropy(logits.flatten(0, 2), labels.flatten()) + self.task_weight * task_loss


class _Head(nn.Module):
    def __init__(self, channels: int, locations: int, classes: int, temperature: float) -> None:
        super().__init__()
        middle = max(1, round(math.sqrt(locations)))
        # On rows, a linear layer equals a 1 x 1 convolution.
        self.weigh = nn.Sequential(
            nn.Linear(locations, middle, bias=False),
            nn.BatchNorm1d(middle),
            nn.ReLU(inplace=True),
            nn.Linear(middle, locations),
        )
        self.classifier = nn.Linear(channels, classes)
        self.temperature = temperature

    def forward(self, classes: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the attention over class locations and over query locations, [B, m, way, r] each.

        Args:
            classes: descriptors of each class, [B, way, r, d]
            query: descriptors of each query, [B, m, r, d]
        """
        class_rows, queries = functional.normalize(classes, dim=-1), functional.normalize(query, dim=-1)
        correlation = torch.einsum("bwid,bmjd->bmwij", class_rows, queries)
        return self._attention(correlation), self._attention(correlation.mT)

    def _attention(self, correlation: Tensor) -> Tensor:
        """Compute 1 plus the attention of each location i from correlations [B, m, way, i, j]."""
        weights = self.weigh(correlation.mean(-2).flatten(0, 2)).view(*correlation.shape[:3], -1)
        agreement = (correlation @ weights.unsqueeze(-1)).squeeze(-1) / correlation.shape[-1]
        attention: Tensor = 1 + (agreement / self.temperature).softmax(-1)
        return attention


def _attend(attention: Tensor, rows: Tensor, side: str) -> Tensor:
    """Average attended locations, [B, m, way, d], of descriptors [B, way, r, d] or, of queries, [B, m, r, d]."""
    product = "bmwr,bwrd->bmwd" if side == "way" else "bmwr,bmrd->bmwd"
    return torch.einsum(product, attention, rows) / rows.shape[2]
