"""RENet: relations within each map, and between the maps of query and support, decide what counts."""

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
from shotproof.models.objective import TaskBatch, TaskObjective, in_parts, trained_by

WINDOW = 5  # a side of the neighborhood that self-correlation sees
NARROW = 64  # channels in which correlations are taken
REFINED = 16  # channels in which cross-correlations are refined


@dataclass(frozen=True)
class RelationalEmbedding(TaskObjective):
    """Cross-entropy of scaled cosines of attended maps, beside two of the training classes.

    Self-correlation adds to each location how it relates to its neighbors. Cross-correlation compares every location of
    a query with every location of a support item, refines that by convolutions over both maps, and attends to the
    locations of both that agree. The training classes are learned from the queries, and from `items_beside` other
    items, each with weight 1 beside `task_weight`.
    """

    about = "tasks: self-correlation within maps, cross-correlation attention between them"
    paper = "Kang, Kwon, Min and Cho, Relational Embedding for Few-Shot Classification, 2021"
    example = "renet(attention_temperature=2)"
    needs = "maps"
    settings = trained_by(
        optimizer="sgd", lr=0.1, nesterov=True, schedule="cosine", tasks=300, tasks_per_update=1, clip=2.0
    )

    temperature: float = option(0.2, "what cosines are divided by", above=0)
    attention_temperature: float = option(5.0, "of the attention; 2 for birds", above=0)
    task_weight: float = option(0.25, "weight of the tasks beside the training classes", above=0)
    items_beside: int = option(128, "other items of the training classes in each update", least=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Both correlation networks, and the classifier of the training classes."""
        return _Head(backbone.map_shape[0], classes, self.attention_temperature)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scaled cosines of attended maps."""
        head, count = cast("_Head", net.head), support.shape[1]
        maps = torch.cat([support, query], 1)
        maps = head.related(maps.flatten(0, 1)).view_as(maps)
        return self._scores(net, maps[:, :count], labels, maps[:, count:], way)

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """That of the tasks, of the queries' classes, and of the items beside."""
        assert batch.beside is not None
        head, count = cast("_Head", net.head), batch.support.shape[1]
        maps = torch.cat(self.seen(net, batch), 1)
        maps = head.related(maps.flatten(0, 1)).view_as(maps)
        scores = self._scores(net, maps[:, :count], batch.support_labels, maps[:, count:], batch.way)
        of_task = self.task_loss(scores, batch.query_labels)
        pooled = centered(maps[:, count:], 2).mean((3, 4))
        of_query = self.task_loss(head.classifier(pooled), batch.query_classes)
        beside = head.related(net(batch.beside.items, "maps")).mean((2, 3))
        of_beside = functional.cross_entropy(head.classifier(beside), batch.beside.labels)
        return self.task_weight * of_task + of_query + of_beside

    def _scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Scores from maps after self-correlation."""
        locations = support.shape[3] * support.shape[4]
        parts = in_parts(net, query, held=2 * REFINED * support.shape[1] * locations**2)
        support = centered(support, 2)
        narrow = cast("_Head", net.head).narrowed(support)
        scores = [self._pair_scores(net, support, narrow, labels, centered(part, 2), way) for part in parts]
        return torch.cat(scores, 1)

    def _pair_scores(
        self, net: FewShotNetwork, support: Tensor, narrow: Tensor, labels: Tensor, query: Tensor, way: int
    ) -> Tensor:
        """Scores [B, m, way] from centered maps [B, n, d, h, w] and [B, m, d, h, w]."""
        head = cast("_Head", net.head)
        of_support, of_query = head.attention(narrow, head.narrowed(query))  # [B, m, n, r] each
        locations = of_support.shape[-1]
        known = torch.einsum("bmnr,bndr->bmnd", of_support, support.flatten(3)) / locations
        asked = torch.einsum("bmnr,bmdr->bmnd", of_query, query.flatten(3)) / locations
        pairs = torch.cat([known, asked], -1).transpose(1, 2)  # [B, n, m, 2 d]
        known, asked = class_means(pairs, labels, way).transpose(1, 2).chunk(2, -1)  # [B, m, way, d]
        return functional.cosine_similarity(known, asked, dim=-1) / self.temperature


def centered(maps: Tensor, channels: int) -> Tensor:
    """Maps less the mean over channels at each location."""
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

    def related(self, maps: Tensor) -> Tensor:
        """Maps [b, d, h, w] with what self-correlation adds."""
        added: Tensor = maps + self.self_correlation(maps)
        return added.relu()

    def narrowed(self, maps: Tensor) -> Tensor:
        """Centered maps [B, n, d, h, w] in fewer channels, of length 1 at each location."""
        narrow = self.narrow(maps.flatten(0, 1)).unflatten(0, maps.shape[:2])
        return functional.normalize(narrow, dim=2, eps=1e-8)

    def attention(self, support: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """How much each location of support and of query counts in each pair, [B, m, n, r] each; the sum is r."""
        height, width = support.shape[3:]
        correlation = torch.einsum("bndij,bmdkl->bmnijkl", support, query)
        refined = self._refined(correlation.flatten(0, 2).unsqueeze(1))
        refined = refined.reshape(*correlation.shape[:3], height * width, height * width)
        of_support = (_standardized(refined, 3) / self.temperature).softmax(3).sum(4)
        of_query = (_standardized(refined, 4) / self.temperature).softmax(4).sum(3)
        return of_support, of_query

    def _refined(self, correlation: Tensor) -> Tensor:
        """Correlations [b, 1, h, w, h, w] after convolutions, with support and query in either place."""
        turned = correlation.permute(0, 1, 4, 5, 2, 3)
        return self._convolved(correlation) + self._convolved(turned).permute(0, 1, 4, 5, 2, 3)

    def _convolved(self, correlation: Tensor) -> Tensor:
        first, second = self.refine
        convolved: Tensor = second(first(correlation).relu())
        return convolved


class _SelfCorrelation(nn.Module):
    """How each location of maps [b, d, h, w] relates to its neighbors, channel by channel: [b, d, h, w]."""

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
        # Every location's window is a small image of its own.
        windows = narrow.permute(0, 4, 1, 2, 3).flatten(0, 1)
        seen = self.window(windows).view(count, height, width, NARROW).permute(0, 3, 1, 2)
        restored: Tensor = self.restore(seen)
        return restored


class _PlaneConvolutions(nn.Module):
    """A convolution over the first plane of [b, c, h, w, h, w], one over the second, then other channels."""

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


def _standardized(values: Tensor, dim: int) -> Tensor:
    """Values less their mean along an axis, over their standard deviation."""
    variance, mean = torch.var_mean(values, dim, keepdim=True)
    return (values - mean) / (variance + 1e-5).sqrt()
