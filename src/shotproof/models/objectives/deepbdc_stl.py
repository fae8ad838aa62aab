"""DeepBDC's simple transfer: a classifier of the base classes on Brownian distance covariances."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.functional.distance_covariance import bdc_vectors
from shotproof.functional.logistic_regression import unit_row_logits
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassObjective, trained_by


@dataclass(frozen=True)
class DeepBdcStl(ClassObjective):
    """Cross-entropy of a linear classifier on the BDC matrix of each map, whose channels are first reduced.

    Scores are those of a logistic regression on the support's BDC matrices.
    """

    about = "classes: a linear classifier on distance covariances of channels; tested by logistic regression"
    paper = (
        "Xie et al., Joint Distribution Matters: Deep Brownian Distance Covariance for Few-Shot Classification, 2022"
    )
    example = "deepbdc-stl(channels=64)"
    needs = "maps"
    settings = trained_by(
        optimizer="sgd",
        lr=0.05,
        nesterov=True,
        schedule="step",
        epochs=170,
        milestones=(100, 150),
        batch=64,
        keep="last",
    )

    channels: int = option(128, "channels of the maps whose covariances are taken", least=2)
    dropout: float = option(
        0.5, "share of the covariances that dropout zeroes before the classifier", least=0, most=0.9
    )
    C: float | None = option(None, "of the logistic regression; None: 0.1 with one shot, else 2", above=0, most=1e9)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Fewer channels, their covariances, and the linear classifier."""
        _, height, width = backbone.map_shape
        return BdcClassifier(backbone.map_shape[0], self.channels, height * width, classes, self.dropout)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The logits of a logistic regression on BDC vectors of length 1."""
        rows, asked = (net.head.vectors(maps.flatten(0, 1)).unflatten(0, maps.shape[:2]) for maps in (support, query))
        strength = self.C or (0.1 if labels.shape[1] == way else 2.0)
        return unit_row_logits(rows, labels, asked, way, strength).to(query.dtype)

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """The scale of the distances takes smaller steps, as in the published code."""
        scale = net.head.log_scale
        return [([each for each in net.parameters() if each.requires_grad and each is not scale], 1.0), ([scale], 0.02)]


class BdcClassifier(nn.Module):
    """Maps [b, d, h, w] to logits, [b, classes], by the covariances of `channels` channels."""

    def __init__(self, inputs: int, channels: int, locations: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.reduction = nn.Sequential(
            nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        )
        self.log_scale = nn.Parameter(torch.tensor(-math.log(2 * locations)))
        self.dropout = nn.Dropout(dropout)
        self.classes = nn.Linear(channels * (channels + 1) // 2, classes)

    def vectors(self, maps: Tensor) -> Tensor:
        """The BDC vectors of maps."""
        return bdc_vectors(self.reduction(maps).flatten(2), self.log_scale)

    def forward(self, maps: Tensor) -> Tensor:
        """The logits."""
        logits: Tensor = self.classes(self.dropout(self.vectors(maps)))
        return logits
