"""DeepBDC with simple transfer learning: a classifier of the training classes on Brownian distance covariances."""

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

    about = "classes: linear classifier on distance covariances of channels; tested by logistic regression"
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

    channels: int = option(128, "number of channels after reduction", least=2)
    dropout: float = option(0.5, "fraction of covariances zeroed by dropout before the classifier", least=0, most=0.9)
    C: float | None = option(None, "C of the logistic regression; None: 0.1 with one shot, else 2", above=0, most=1e9)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the channel reduction, the covariances, and the linear classifier."""
        _, height, width = backbone.map_shape
        return BdcClassifier(backbone.map_shape[0], self.channels, height * width, classes, self.dropout)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the logits of a logistic regression on BDC vectors of length 1."""
        rows, query_rows = (
            net.head.vectors(maps.flatten(0, 1)).unflatten(0, maps.shape[:2]) for maps in (support, query)
        )
        strength = self.C or (0.1 if labels.shape[1] == way else 2.0)
        return unit_row_logits(rows, labels, query_rows, way, strength).to(query.dtype)

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """Return the parameter groups; the distance scale has a lower learning rate, as in the published code."""
        scale = net.head.log_scale
        return [
            ([parameter for parameter in net.parameters() if parameter.requires_grad and parameter is not scale], 1.0),
            ([scale], 0.02),
        ]


class BdcClassifier(nn.Module):
    """Classifier of maps [b, d, h, w] by the covariances of `channels` channels, with logits [b, classes]."""

    def __init__(self, inputs: int, channels: int, locations: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.reduction = nn.Sequential(
            nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        )
        self.log_scale = nn.Parameter(torch.tensor(-math.log(2 * locations)))
        self.dropout = nn.Dropout(dropout)
        self.classes = nn.Linear(channels * (channels + 1) // 2, classes)

    def vectors(self, maps: Tensor) -> Tensor:
        """Compute the BDC vectors of maps."""
        return bdc_vectors(self.reduction(maps).flatten(2), self.log_scale)

    def forward(self, maps: Tensor) -> Tensor:
        """Compute the logits."""
        logits: Tensor = self.classes(self.dropout(self.vectors(maps)))
        return logits
