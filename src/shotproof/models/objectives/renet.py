"""RENet: self-correlation within maps, and cross-correlation attention between query and support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, query_parts, trained_by

WINDOW = 5  # side of the neighborhood for self-correlation
NARROW = 64  # channels for correlations
REFINED = 16  # channels for refining cross-correlations


@dataclass(frozen=True)
class RelationalEmbedding(TaskObjective):
    """Cross-entropy of scaled cosines of attended maps, plus two losses on the training classes.

    Self-correlation adds the relations of each location to its neighbors. Cross-correlation compares every location of
    a query with every location of a support item, is refined by convolutions over both maps, and gives attention to
    locations of both that agree. The training classes are classified from the queries and from `items_beside` other
    items, each with weight 1; the task loss has weight `task_weight`.
    """

    about = "tasks: self-correlation within maps, cross-correlation attention between them"
    paper = "Kang, Kwon, Min and Cho, Relational Embedding for Few-Shot Classification, 2021"
    example = "renet(attention_temperature=2)"
    needs = "maps"
    settings = trained_by(
        optimizer="sgd", lr=0.1, nesterov=True, schedule="cosine", tasks=300, tasks_per_update=1, clip=2.0
    )

    temperature: float = option(0.2, "divisor of the cosines", above=0)
    attention_temperature: float = option(5.0, "temperature of the attention; 2 for birds", above=0)
    task_weight: float = option(0.25, "weight of the task loss relative to those of the training classes", above=0)
    items_beside: int = option(128, "additional items of the training classes in each update", least=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build both correlation networks, and the classifier of the training classes."""
        return _Head(backbone.map_shape[0], classes, self.attention_temperature)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the scaled cosines of attended maps."""
        head, count = cast("_Head", net.head), support.shape[1]
        maps = torch.cat([support, query], 1)
        maps = head.relate(maps.flatten(0, 1)).view_as(maps)
        return self._scores(net, maps[:, :count], labels, maps[:, count:], way)

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the loss of the tasks, of the queries' training classes, and of the additional items."""
        assert batch.extra_items is not None
        head, count = cast("_Head", net.head), batch.support.shape[1]
        maps = torch.cat(self.encode_batch(net, batch), 1)
        maps = head.relate(maps.flatten(0, 1)).view_as(maps)
        scores = self._scores(net, maps[:, :count], batch.support_labels, maps[:, count:], batch.way)
        task_loss = self.task_loss(scores, batch.query_labels)
        pooled = center_channels(maps[:, count:], 2).mean((3, 4))
        query_loss = self.task_loss(head.classifier(pooled), batch.query_classes)
        extra_vectors = head.relate(net(batch.extra_items.items, "maps")).mean((2, 3))
        extra_loss = functional.cross_entropy(head.classifier(extra_vectors), batch.extra_items.labels)
        return self.task_weight * task_loss + query_loss + extra_loss

    def _scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the scores from maps after self-correlation."""
        locations = support.shape[3] * support.shape[4]
        query_chunks = query_parts(net, query, numbers_per_query=2 * REFINED * support.shape[1] * locations**2)
        support = center_channels(support, 2)
        narrow = cast("_Head", net.head).reduce_channels(support)
        scores = [
            self._pair_scores(net, support, narrow, labels, center_channels(chunk, 2), way) for chunk in query_chunks
        ]
        return torch.cat(scores, 1)

    def _pair_scores(
        self, net: FewShotNetwork, support: Tensor, narrow: Tensor, labels: Tensor, query: Tensor, way: int
    ) -> Tensor:
        """Compute scores [B, m, way] from centered maps [B, n, d, h, w] and [B, m, d, h, w]."""
        head = cast("_Head", net.head)
        support_attention, query_attention = head.attention(narrow, head.reduce_channels(query))  # [B, m, n, r] each
        locations = support_attention.shape[-1]
        class_vectors = torch.einsum("bmnr,bndr->bmnd", support_attention, support.flatten(3)) / locations
        query_vectors = torch.einsum("bmnr,bmdr->bmnd", query_attention, query.flatten(3)) / locations
        pairs = torch.cat([class_vectors, query_vectors], -1).transpose(1, 2)  # [B, n, m, 2 d]
        class_vectors, query_vectors = class_means(pairs, labels, way).transpose(1, 2).chunk(2, -1)  # [B, m, way, d]
        return functional.cosine_similarity(class_vectors, query_vectors, dim=-1) / self.temperature


def center_channels(maps: Tensor, channels: int) -> Tensor:
    """Subtract the mean over channels at each location from maps."""
    return maps - maps.mean(channels, keepdim=True)


class _Head(nn.Module):
    def __init__(self, channels: int, classes: int, temperature: float) -> None:
        super().__init__()
        self.self_correlation = _SelfCorrelation(channels)
        self.narrow = nn.Sequential(
            nn.Conv2d(channels, NARROW, 1, bias=False), nn.BatchNorm2d(NARROW), nn.ReLU(inplace=True)
        )
        self.refine = nn.ModuleList([_PlaneConvolutions(1, REFINED), _PlaneConvolutions(REFINED, 1)])
        self.classifier = nn.Linear(channels, classes)
        self.temperature = temperature

    def relate(self, maps: Tensor) -> Tensor:
        """Add self-correlation to maps [b, d, h, w]."""
        output: Tensor = maps + self.self_correlation(maps)
        return output.relu()

    def reduce_channels(self, maps: Tensor) -> Tensor:
        """Reduce the channels of centered maps [B, n, d, h, w], and scale to length 1 at each location."""
        narrow = self.narrow(maps.flatten(0, 1)).unflatten(0, maps.shape[:2])
        return functional.normalize(narrow, dim=2, eps=1e-8)

    def attention(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the attention over support and query locations in each pair, [B, m, n, r] each; they sum to r."""
        height, width = support.shape[3:]
        correlation = torch.einsum("bndij,bmdkl->bmnijkl", support, query)
        refined = self._refine(correlation.flatten(0, 2).unsqueeze(1))
        refined = refined.reshape(*correlation.shape[:3], height * width, height * width)
        support_attention = (_standardize(refined, 3) / self.temperature).softmax(3).sum(4)
        query_attention = (_standardize(refined, 4) / self.temperature).softmax(4).sum(3)
        return support_attention, query_attention

    def _refine(self, correlation: Tensor) -> Tensor:
        """Refine correlations [b, 1, h, w, h, w] by convolutions, summed over both orders of support and query."""
        swapped = correlation.permute(0, 1, 4, 5, 2, 3)
        return self._convolve(correlation) + self._convolve(swapped).permute(0, 1, 4, 5, 2, 3)

    def _convolve(self, correlation: Tensor) -> Tensor:
        first, second = self.refine
        output: Tensor = second(first(correlation).relu())
        return output


class _SelfCorrelation(nn.Module):
    """Correlations of each location of maps [b, d, h, w] with its neighbors, by channel: [b, d, h, w]."""

    def __init__(self, channels: int) -> None:
        super().__init__()

        def inner() -> list[nn.Module]:
            return [nn.Conv2d(NARROW, NARROW, 3, bias=False), nn.BatchNorm2d(NARROW), nn.ReLU(inplace=True)]

        self.reduce = nn.Sequential(
            nn.Conv1d(channels, NARROW, 1, bias=False), nn.BatchNorm1d(NARROW), nn.ReLU(inplace=True)
        )
        self.window = nn.Sequential(*inner(), *inner())  # from 5 x 5 neighbors to one number
        self.restore = nn.Sequential(nn.Conv2d(NARROW, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, maps: Tensor) -> Tensor:
        count, channels, height, width = maps.shape
        unit = functional.normalize(maps.relu(), dim=1)
        neighbors = functional.unfold(unit, WINDOW, padding=WINDOW // 2).view(count, channels, WINDOW**2, -1)
        products = neighbors * unit.flatten(2).unsqueeze(2)  # [b, d, 25, r]
        narrow = self.reduce(products.flatten(2)).view(count, NARROW, WINDOW, WINDOW, height * width)
        # Each location's window is treated as a small image.
        windows = narrow.permute(0, 4, 1, 2, 3).flatten(0, 1)
        window_values = self.window(windows).view(count, height, width, NARROW).permute(0, 3, 1, 2)
        output: Tensor = self.restore(window_values)
        return output


class _PlaneConvolutions(nn.Module):
    """Convolutions over the first and over the second plane of [b, c, h, w, h, w], then a change of channels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(inputs, inputs, 3, padding=1, bias=False) for _ in range(2))
        self.first_norm, self.second_norm = nn.BatchNorm2d(inputs), nn.BatchNorm2d(inputs)
        self.project = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, values: Tensor) -> Tensor:
        count, channels, *sides = values.shape
        planes = values.permute(0, 4, 5, 1, 2, 3).reshape(-1, channels, *sides[:2])
        planes = self.first_norm(self.first(planes)).relu()
        planes = planes.view(count, *sides[2:], channels, *sides[:2]).permute(0, 4, 5, 3, 1, 2)  # first plane in front
        planes = self.second_norm(self.second(planes.reshape(-1, channels, *sides[2:])))
        projected: Tensor = self.project(planes).view(count, *sides[:2], -1, *sides[2:])
        return projected.permute(0, 3, 1, 2, 4, 5)


def _standardize(values: Tensor, dim: int) -> Tensor:
    """Standardize values along an axis: subtract the mean, divide by the standard deviation."""
    variance, mean = torch.var_mean(values, dim, keepdim=True)
    return (values - mean) / (variance + 1e-5).sqrt()
