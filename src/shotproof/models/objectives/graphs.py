"""GNN and TPN: labels pass from the support to the queries over a graph."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.functional.feature_rows import squared_distances
from shotproof.models.backbone import BackboneNetwork, Shape
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, in_parts, trained_by

LAYERS = 2
SLOPE = 0.01
EPSILON = 1e-12  # of a node's degree
LEAST_WIDTH = 1e-3


@dataclass(frozen=True)
class GraphNetwork(TaskObjective):
    """Cross-entropy of what a graph network says of each query, in a graph of the support and that query alone.

    A node is an item's projected vector beside its one-hot label, a query's with equal shares. Edges are read from the
    absolute differences of nodes; each layer adds what it has learned to the nodes. The network knows classes by their
    place, so it is for tasks of as many classes as it was trained on.
    """

    about = "tasks: a graph network over support and query, for one number of classes"
    paper = "Garcia and Bruna, Few-Shot Learning with Graph Neural Networks, 2018"
    example = "gnn(width=48)"
    symmetric = False
    # Its batch norm wants many tasks in each update, so each has few queries.
    settings = trained_by(query=1, tasks=8000, tasks_per_update=40, optimizer="adam", lr=1e-3, weight_decay=1e-6)

    dim: int = option(128, "numbers of a projected vector", least=1)
    width: int = option(96, "filters of the networks that read edges", least=2)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The projection and the graph network."""
        return _Graphs(backbone.dim, self.dim, self.width, way)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """What the graph network says of each query.

        Raises:
            InputError: the tasks have another number of classes.
        """
        head = cast("_Graphs", net.head)
        if way != head.way:
            raise InputError(f"objective 'gnn' was trained on tasks of {head.way} classes, found tasks of {way}")
        rows = head.project(torch.cat([support, query], 1).flatten(0, 1)).unflatten(0, (len(support), -1))
        known = torch.cat([rows[:, : support.shape[1]], functional.one_hot(labels, way).to(rows.dtype)], -1)
        asked = functional.pad(rows[:, support.shape[1] :], (0, way), value=1 / way)
        parts = in_parts(net, asked, held=4 * self.width * (support.shape[1] + 1) ** 2)
        return torch.cat([head(known, part) for part in parts], 1)


class _Graphs(nn.Module):
    """Support nodes [B, n, d] and query nodes [B, m, d] to scores [B, m, way]."""

    def __init__(self, inputs: int, dim: int, width: int, way: int) -> None:
        super().__init__()
        self.way = way
        self.project = nn.Sequential(nn.Linear(inputs, dim, bias=False), nn.BatchNorm1d(dim))
        sizes = [dim + way + layer * (width // 2) for layer in range(LAYERS + 1)]
        self.edges = nn.ModuleList(_Edges(size, width) for size in sizes)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Linear(2 * size, width // 2, bias=False),
                nn.BatchNorm1d(width // 2),
                nn.LeakyReLU(SLOPE, inplace=True),
            )
            for size in sizes[:-1]
        )
        self.last = nn.Linear(2 * sizes[-1], way)

    def forward(self, known: Tensor, asked: Tensor) -> Tensor:
        count = asked.shape[1]
        nodes = torch.cat([asked.unsqueeze(2), known.unsqueeze(1).expand(-1, count, -1, -1)], 2).flatten(0, 1)
        for edges, layer in zip(self.edges, self.layers, strict=False):  # the last edges belong to `last`
            seen = torch.cat([nodes, edges(nodes) @ nodes], -1)
            nodes = torch.cat([nodes, layer(seen.flatten(0, 1)).unflatten(0, nodes.shape[:2])], -1)
        seen = torch.cat([nodes, self.edges[-1](nodes) @ nodes], -1)
        scores: Tensor = self.last(seen[:, 0])
        return scores.view(-1, count, self.way)


class _Edges(nn.Module):
    """Nodes [g, k, d] to the share that each gives to the others' messages, [g, k, k], without itself."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        sizes = (inputs, 2 * width, 2 * width, width, width)
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after, bias=False), nn.BatchNorm1d(after), nn.LeakyReLU(SLOPE, inplace=True)]
        # A bias would add the same to all edges, which the softmax does not see.
        self.network = nn.Sequential(*layers, nn.Linear(width, 1, bias=False))

    def forward(self, nodes: Tensor) -> Tensor:
        count = nodes.shape[1]
        apart = (nodes.unsqueeze(1) - nodes.unsqueeze(2)).abs()
        logits = self.network(apart.flatten(0, 2)).view(len(nodes), count, count)
        itself = torch.eye(count, dtype=torch.bool, device=nodes.device)
        shares: Tensor = logits.masked_fill(itself, -torch.inf).softmax(-1)
        return shares


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
    settings = trained_by(
        optimizer="adam", lr=1e-3, weight_decay=0.0, schedule="step", milestones=(20, 40, 60, 80), decay=0.5
    )

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
        return self.task_loss(scores, torch.cat([batch.support_labels, batch.query_labels], 1))

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
