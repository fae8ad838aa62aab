"""TPN: labels spread from the support to the queries over a graph whose widths are learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork, Shape
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective
from shotproof.models.prototypes import squared_distances

EPSILON = 1e-12  # of a node's degree
LEAST_WIDTH = 1e-3


@dataclass(frozen=True)
class Propagation(TaskObjective):
    """Cross-entropy of label propagation, over support and queries together.

    Items i and j are joined by exp(-d / 2), d the mean squared difference of their maps, each over a width that a
    small network reads from the map itself, and only where one is among the nearest `neighbors` of the other. With S
    the normalized graph and Y the support's labels, the scores are (I - alpha S)^-1 Y.
    """

    about = "tasks: transductive label propagation over a graph of learned widths"
    paper = "Liu et al., Learning to Propagate Labels: Transductive Propagation Network for Few-shot Learning, 2019"
    example = "tpn(neighbors=10)"
    needs = "maps"
    family = "transductive"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 1e-3,
        "weight_decay": 0.0,
        "schedule": "step",
        "milestones": (20, 40, 60, 80),
        "decay": 0.5,
    }

    alpha: float = option(0.99, "how far labels spread", above=0, most=0.999)
    neighbors: int = option(
        20,
        "nearest items, itself among them, that an item is joined with: about as many as its class has in a task",
        least=1,
    )

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The network of the widths."""
        return _width_network(backbone.map_shape)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The queries' share of the labels."""
        return self._spread(net, support, labels, query, way)[:, support.shape[1] :]

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """The cross-entropy of support and queries."""
        support, query = self.seen(net, batch)
        scores = self._spread(net, support, batch.support_labels, query, batch.way)
        labels = torch.cat([batch.support_labels, batch.query_labels], 1)
        return functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

    def _spread(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """What each item, support first, has got of each class: [B, n + m, way]."""
        maps = torch.cat([support, query], 1)
        width: Tensor = net.head(maps.flatten(0, 1))
        graph = self._graph(maps.flatten(2), width.view(*maps.shape[:2], 1) + LEAST_WIDTH)
        target = functional.one_hot(labels, way).to(graph.dtype)
        target = functional.pad(target, (0, 0, 0, query.shape[1]))
        eye = torch.eye(graph.shape[-1], dtype=graph.dtype, device=graph.device)
        spread: Tensor = torch.linalg.solve(eye - self.alpha * graph, target)
        return spread.to(support.dtype)

    def _graph(self, rows: Tensor, width: Tensor) -> Tensor:
        """The normalized graph of rows [B, k, d] and their widths [B, k, 1]: float64 [B, k, k]."""
        scaled = (rows / width).double()
        joined = (-squared_distances(scaled, scaled) / (2 * rows.shape[-1])).exp()
        near = torch.zeros_like(joined, dtype=torch.bool)
        near.scatter_(-1, joined.topk(min(self.neighbors, joined.shape[-1])).indices, True)
        joined = joined * (near | near.mT)
        degree = (joined.sum(-1) + EPSILON).rsqrt()
        return degree.unsqueeze(-1) * joined * degree.unsqueeze(-2)


def _width_network(shape: Shape) -> nn.Sequential:
    """From maps [b, d, h, w] to the width of each, above 0: [b, 1]."""
    channels, *sides = shape

    def block(inputs: int, outputs: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.MaxPool2d(2, ceil_mode=True)]

    height, width = (-(-side // 4) for side in sides)
    last = [nn.Linear(height * width, 8), nn.ReLU(inplace=True), nn.Linear(8, 1), nn.Softplus()]
    return nn.Sequential(*block(channels, 64), *block(64, 1), nn.Flatten(), *last)
