"""RelationNet: a learned comparison of the maps of query and class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.feature_rows import class_means
from shotproof.models.backbone import BackboneNetwork, Shape
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective, query_parts, trained_by

UNPADDED = 10  # smallest side of a map for convolutions and pools without padding
HIDDEN = 8


@dataclass(frozen=True)
class RelationNet(TaskObjective):
    """Cross-entropy of the scores of a relation module with two convolutions on each pair of query and class.

    A class's map is the mean over its shots (`shots="sum"`: their sum, as in some published code, which ties the model
    to a number of shots). With `error="squared"`, as in the paper, sigmoid scores are compared with the one-hot labels.
    The paper's maps have 19 x 19 or 21 x 21 locations: `conv64f(pools=2)` at 84 pixels.
    """

    about = "tasks: learned comparison of the maps of query and class"
    paper = "Sung et al., Learning to Compare: Relation Network for Few-Shot Learning, 2018"
    example = "relationnet(error='squared')"
    needs = "maps"
    settings = trained_by(optimizer="adam", lr=1e-3, schedule="step", milestones=(20, 40, 60, 80), decay=0.5)

    shots: str = option("mean", "how the maps of a class's shots are combined", choices=("mean", "sum"))
    error: str = option("entropy", "loss: cross-entropy, or squared error", choices=("entropy", "squared"))

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the relation module."""
        return _Comparator(backbone.map_shape)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score each pair by the relation module."""
        maps = class_means(support, labels, way)
        if self.shots == "sum":
            maps = maps * functional.one_hot(labels, way).sum(1)[..., None, None, None]
        parts = query_parts(net, query, numbers_per_query=2 * way * query[0, 0].numel())
        return torch.cat([net.head(part, maps) for part in parts], 1)

    def task_loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Compute the cross-entropy, or the squared error to one-hot labels."""
        if self.error == "entropy":
            return super().task_loss(scores, labels)
        return functional.mse_loss(scores.sigmoid(), functional.one_hot(labels, scores.shape[-1]).to(scores.dtype))


class _Comparator(nn.Module):
    """Relation module from query maps [B, m, d, h, w] and class maps [B, way, d, h, w] to scores [B, m, way]."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        channels, *sides = shape
        padding = int(min(sides) < UNPADDED)
        self.first = nn.Conv2d(2 * channels, channels, 3, padding=padding, bias=False)

        def block() -> list[nn.Module]:
            return [nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.MaxPool2d(2, ceil_mode=bool(padding))]

        second = nn.Conv2d(channels, channels, 3, padding=padding, bias=False)
        self.body = nn.Sequential(*block(), second, *block(), nn.Flatten())
        for _ in range(2):  # side after convolution and pool
            sides = [-(-side // 2) if padding else (side - 2) // 2 for side in sides]
        self.relation = nn.Sequential(
            nn.Linear(channels * sides[0] * sides[1], HIDDEN), nn.ReLU(inplace=True), nn.Linear(HIDDEN, 1)
        )

    def forward(self, query: Tensor, classes: Tensor) -> Tensor:
        # The first convolution on concatenated maps is the sum of two, which can be computed before pairing.
        halves = self.first.weight.chunk(2, dim=1)
        query_maps, class_maps = (
            functional.conv2d(side.flatten(0, 1), half, padding=self.first.padding)
            for side, half in zip((query, classes), halves, strict=True)
        )
        shape = query_maps.shape[1:]
        pairs = query_maps.view(*query.shape[:2], 1, *shape) + class_maps.view(len(classes), 1, -1, *shape)
        scores: Tensor = self.relation(self.body(pairs.flatten(0, 2)))
        return scores.view(*pairs.shape[:3])
