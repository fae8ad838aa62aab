"""Baseline: a classifier of the base classes, whose features serve the new ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import nn

from shotproof.models.backbone import BackboneNetwork
from shotproof.models.objective import ClassObjective


@dataclass(frozen=True)
class Baseline(ClassObjective):
    """Cross-entropy of a linear classifier of all training classes."""

    about = "classes: a linear classifier of the training classes"
    paper = "Chen, Liu, Kira, Wang and Huang, A Closer Look at Few-shot Classification, 2019"
    settings: ClassVar[Mapping[str, Any]] = {"optimizer": "adam", "lr": 1e-3, "batch": 128, "keep": "last"}

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The linear classifier."""
        return nn.Linear(backbone.dim, classes)
