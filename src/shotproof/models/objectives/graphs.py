"""GNN and TPN: labels propagate from the support to the queries over a graph."""

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
from shotproof.models.objective import TaskBatch, TaskObjective, query_parts, trained_by

LAYERS = 2
SLOPE = 0.01
EPSILON = 1e-12  # added to a node's degree
LEAST_WIDTH = 1e-3


@dataclass(frozen=True)
class GraphNetwork(TaskObjective):
    """Cross-entropy of a graph network's scores for each query, in a graph of the support and that query alone.

    A node is an item's projected vector concatenated with its one-hot label, uniform for a query. Edge weights are
    computed from absolute differences of nodes; each layer appends its output to the nodes. The network identifies
    classes by their position, so it only handles tasks with the number of classes it was trained on.
    """

    about = "tasks: graph network over support and query, for a fixed number of classes"
    paper = "Garcia and Bruna, Few-Shot Learning with Graph Neural Networks, 2018"
    example = "gnn(width=48)"
    symmetric = False
    # Its batch norm needs many tasks in each update, so each task has few queries.
    settings = trained_by(query=1, tasks=8000, tasks_per_update=40, optimizer="adam", lr=1e-3, weight_decay=1e-6)

    dim: int = option(128, "dimensions of a projected vector", least=1)
    width: int = option(96, "width of the networks that compute edge weights", least=2)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the projection and the graph network."""
        return _Graphs(backbone.dim, self.dim, self.width, way)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score each query by the graph network.

        Raises:
            InputError: the tasks have another number of classes.
        """
        head = cast("_Graphs", net.head)
        if way != head.way:
            raise InputError(f"objective 'gnn' was trained on tasks of {head.way} classes, but these tasks have {way}")
        rows = head.project(torch.cat([support, query], 1).flatten(0, 1)).unflatten(0, (len(support), -1))
        support_nodes = torch.cat([rows[:, : support.shape[1]], functional.one_hot(labels, way).to(rows.dtype)], -1)
        query_nodes = functional.pad(rows[:, support.shape[1] :], (0, way), value=1 / way)
        parts = query_parts(net, query_nodes, numbers_per_query=4 * self.width * (support.shape[1] + 1) ** 2)
        return torch.cat([head(support_nodes, part) for part in parts], 1)


class _Graphs(nn.Module):
    """Graph network from support nodes [B, n, d] and query nodes [B, m, d] to scores [B, m, way]."""

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

    def forward(self, support_nodes: Tensor, query_nodes: Tensor) -> Tensor:
        count = query_nodes.shape[1]
        nodes = torch.cat([query_nodes.unsqueeze(2), support_nodes.unsqueeze(1).expand(-1, count, -1, -1)], 2).flatten(
            0, 1
        )
        for edges, layer in zip(self.edges, self.layers, strict=False):  # the last edges belong to `last`
            messages = torch.cat([nodes, edges(nodes) @ nodes], -1)
            nodes = torch.cat([nodes, layer(messages.flatten(0, 1)).unflatten(0, nodes.shape[:2])], -1)
        messages = torch.cat([nodes, self.edges[-1](nodes) @ nodes], -1)
        scores: Tensor = self.last(messages[:, 0])
        return scores.view(-1, count, self.way)


class _Edges(nn.Module):
    """Network from nodes [g, k, d] to edge weights [g, k, k], normalized over the other nodes."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        sizes = (inputs, 2 * width, 2 * width, width, width)
        layers: list[nn.Module] = []
        for inputs_size, outputs_size in pairwise(sizes):
            layers += [
                nn.Linear(inputs_size, outputs_size, bias=False),
                nn.BatchNorm1d(outputs_size),
                nn.LeakyReLU(SLOPE, inplace=True),
            ]
        # A bias would be the same for all edges, and the softmax cancels it.
        self.network = nn.Sequential(*layers, nn.Linear(width, 1, bias=False))

    def forward(self, nodes: Tensor) -> Tensor:
        count = nodes.shape[1]
        differences = (nodes.unsqueeze(1) - nodes.unsqueeze(2)).abs()
        logits = self.network(differences.flatten(0, 2)).view(len(nodes), count, count)
        is_self = torch.eye(count, dtype=torch.bool, device=nodes.device)
        shares: Tensor = logits.masked_fill(is_self, -torch.inf).softmax(-1)
        return shares


@dataclass(frozen=True)
class Propagation(TaskObjective):
    """Cross-entropy of label propagation, over support and queries together.

    Items i and j are connected with weight exp(-d / 2) if one is among the nearest `neighbors` of the other; d is the
    mean squared difference of their maps, each divided by a width that a small network computes from the map. With S
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
        "nearest items connected to each item, including itself: about the number of items per class in a task",
        least=1,
    )

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the network that computes the widths."""
        return _width_network(backbone.map_shape)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Return the propagated labels of the queries."""
        return self._propagate(net, support, labels, query, way)[:, support.shape[1] :]

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the cross-entropy of support and queries."""
        support, query = self.encode_batch(net, batch)
        scores = self._propagate(net, support, batch.support_labels, query, batch.way)
        return self.task_loss(scores, torch.cat([batch.support_labels, batch.query_labels], 1))

    def _propagate(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Propagate labels to all items, support first: [B, n + m, way]."""
        maps = torch.cat([support, query], 1)
        width: Tensor = net.head(maps.flatten(0, 1))
        graph = self._graph(maps.flatten(2), width.view(*maps.shape[:2], 1) + LEAST_WIDTH)
        target = functional.one_hot(labels, way).to(graph.dtype)
        target = functional.pad(target, (0, 0, 0, query.shape[1]))
        eye = torch.eye(graph.shape[-1], dtype=graph.dtype, device=graph.device)
        propagated: Tensor = torch.linalg.solve(eye - self.alpha * graph, target)
        return propagated.to(support.dtype)

    def _graph(self, rows: Tensor, width: Tensor) -> Tensor:
        """Compute the normalized graph of rows [B, k, d] with widths [B, k, 1]: float64 [B, k, k]."""
        scaled = (rows / width).double()
        weights = (-squared_distances(scaled, scaled) / (2 * rows.shape[-1])).exp()
        is_neighbor = torch.zeros_like(weights, dtype=torch.bool)
        is_neighbor.scatter_(-1, weights.topk(min(self.neighbors, weights.shape[-1])).indices, True)
        weights = weights * (is_neighbor | is_neighbor.mT)
        degree = (weights.sum(-1) + EPSILON).rsqrt()
        return degree.unsqueeze(-1) * weights * degree.unsqueeze(-2)


def _width_network(shape: Shape) -> nn.Sequential:
    """Build the network from maps [b, d, h, w] to the width of each, above 0: [b, 1]."""
    channels, *sides = shape

    def block(inputs: int, outputs: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.MaxPool2d(2, ceil_mode=True)]

    height, width = (-(-side // 4) for side in sides)
    last = [nn.Linear(height * width, 8), nn.ReLU(inplace=True), nn.Linear(8, 1), nn.Softplus()]
    return nn.Sequential(*block(channels, 64), *block(64, 1), nn.Flatten(), *last)
