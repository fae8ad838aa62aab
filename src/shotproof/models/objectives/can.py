"""CAN: the maps of class and query attend to each other before they are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means
from shotproof.functional.local_maps import chunks, descriptors
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, trained_by


@dataclass(frozen=True)
class CrossAttention(TaskObjective):
    """Cross-entropy of the training classes at each location, and half that of scaled cosines with attended classes.

    The correlation of every location of a class's mean map with every location of the query's decides, by a small
    learned network, which locations of both count more. In the loss each location of a query is compared with the
    attended class by itself, in the scores the mean over its attended locations.
    """

    about = "tasks: cross-attention between the maps of class and query"
    paper = "Hou, Chang, Ma, Shan and Chen, Cross Attention Network for Few-shot Classification, 2019"
    example = "can(scale=10)"
    needs = "maps"
    settings = trained_by(optimizer="sgd", lr=0.1, nesterov=True, schedule="cosine", tasks_per_update=4)

    scale: float = option(7.0, "factor of the cosines", above=0)
    temperature: float = option(0.025, "of the attention: how little it spreads", above=0)
    task_weight: float = option(0.5, "weight of the tasks beside the training classes", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The attention's small network, and the classifier of the training classes."""
        channels, height, width = backbone.map_shape
        return _Head(channels, height * width, classes, self.temperature)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Scaled cosines of the attended class and the attended query."""
        classes, asked = (descriptors(each, each.dtype) for each in (class_means(support, labels, way), query))
        scores = []
        for part in chunks(asked, held=4 * way * asked.shape[2] ** 2):
            of_class, of_query = cast("_Head", net.head)(classes, part)
            pooled_class, pooled_query = _attended(of_class, classes, "way"), _attended(of_query, part, "query")
            scores.append(functional.cosine_similarity(pooled_class, pooled_query, dim=-1))
        return self.scale * torch.cat(scores, 1)

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """The classification of training classes, plus that of the tasks, both at every location of a query."""
        head = cast("_Head", net.head)
        support, query = self.seen(net, batch)
        means = class_means(support, batch.support_labels, batch.way)
        classes, asked = (descriptors(each, each.dtype) for each in (means, query))
        of_class, of_query = head(classes, asked)
        pooled = functional.normalize(_attended(of_class, classes, "way"), dim=-1)  # [B, m, way, d]
        cosines = functional.normalize(asked, dim=-1) @ pooled.mT  # [B, m, r, way]; a location's weight has no say
        spread = batch.query_labels.unsqueeze(-1).expand(cosines.shape[:3])
        of_task = functional.cross_entropy(self.scale * cosines.flatten(0, 2), spread.flatten())
        # The query as it attends to its own class.
        own = of_query.gather(2, batch.query_labels[..., None, None].expand(-1, -1, 1, of_query.shape[-1])).squeeze(2)
        logits = head.classifier(asked * own.unsqueeze(-1))
        spread = batch.query_classes.unsqueeze(-1).expand(logits.shape[:3])
        return functional.cross_entropy(logits.flatten(0, 2), spread.flatten()) + self.task_weight * of_task


class _Head(nn.Module):
    def __init__(self, channels: int, locations: int, classes: int, temperature: float) -> None:
        super().__init__()
        middle = max(1, round(math.sqrt(locations)))
        # On rows, a linear layer is a convolution of one location.
        self.weigh = nn.Sequential(
            nn.Linear(locations, middle, bias=False),
            nn.BatchNorm1d(middle),
            nn.ReLU(inplace=True),
            nn.Linear(middle, locations),
        )
        self.classifier = nn.Linear(channels, classes)
        self.temperature = temperature

    def forward(self, classes: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """The attention of class locations and of query locations, [B, m, way, r] each.

        Args:
            classes: the descriptors of each class, [B, way, r, d]
            query: those of each query, [B, m, r, d]
        """
        known, asked = functional.normalize(classes, dim=-1), functional.normalize(query, dim=-1)
        correlation = torch.einsum("bwid,bmjd->bmwij", known, asked)
        return self._attention(correlation), self._attention(correlation.mT)

    def _attention(self, correlation: Tensor) -> Tensor:
        """1 plus the share of each location i, from correlations [B, m, way, i, j]."""
        weights = self.weigh(correlation.mean(-2).flatten(0, 2)).view(*correlation.shape[:3], -1)
        agreement = (correlation @ weights.unsqueeze(-1)).squeeze(-1) / correlation.shape[-1]
        attention: Tensor = 1 + (agreement / self.temperature).softmax(-1)
        return attention


def _attended(attention: Tensor, rows: Tensor, side: str) -> Tensor:
    """The mean of attended locations, [B, m, way, d], of descriptors [B, way, r, d] or, of queries, [B, m, r, d]."""
    product = "bmwr,bwrd->bmwd" if side == "way" else "bmwr,bmrd->bmwd"
    return torch.einsum(product, attention, rows) / rows.shape[2]
