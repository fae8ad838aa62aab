"""Baseline++: a classifier of the base classes by cosines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.objective import ClassObjective

EPSILON = 1e-5  # added to the length of a feature, as the published code does
MANY_CLASSES = 200  # above which cosines are scaled more, as the published code does


@dataclass(frozen=True)
class BaselinePlusPlus(ClassObjective):
    """Cross-entropy of scale g cos(v, x), with a direction v and a length g of each training class, both learned."""

    about = "classes: a cosine classifier of the training classes"
    paper = "Chen, Liu, Kira, Wang and Huang, A Closer Look at Few-shot Classification, 2019"
    example = "baseline++(scale=10)"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "sgd",
        "lr": 0.01,
        "schedule": "cosine",
        "batch": 128,
        "keep": "last",
    }

    scale: float | None = option(None, "factor of the cosines; None: 2 for up to 200 classes, else 10", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The cosine classifier."""
        scale = self.scale or (2.0 if classes <= MANY_CLASSES else 10.0)
        return CosineClassifier(backbone.dim, classes, scale)


class CosineClassifier(nn.Module):
    """Vectors [b, dim] to scale g cos(v, x), [b, classes]: a linear layer by weight norm, on vectors of length 1."""

    def __init__(self, dim: int, classes: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.directions = nn.Parameter(nn.Linear(dim, classes, bias=False).weight.detach())
        self.lengths = nn.Parameter(self.directions.detach().norm(dim=1))

    def forward(self, vectors: Tensor) -> Tensor:
        """The logits."""
        lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        units = vectors / (lengths + EPSILON)
        return self.scale * self.lengths * (units @ nn.functional.normalize(self.directions, dim=1).mT)
