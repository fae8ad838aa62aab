"""Neg-Cosine: a cosine classifier of the base classes with a negative margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassBatch, ClassObjective


@dataclass(frozen=True)
class NegCosine(ClassObjective):
    """Cross-entropy of scale cos(w, x), where the margin is taken from the cosine of the true class.

    A negative margin raises it: classes are kept apart less, which serves classes that training does not see.
    """

    about = "classes: a cosine classifier with a negative margin"
    paper = "Liu et al., Negative Margin Matters: Understanding Margin in Few-shot Classification, 2020"
    example = "neg-cosine(margin=-0.01)"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 3e-3,
        "weight_decay": 1e-4,
        "schedule": "cosine",
        "warm_up": 100.0,
        "epochs": 400,
        "batch": 256,
    }

    scale: float = option(30.0, "factor of the cosines", above=0)
    margin: float = option(-0.02, "what is taken from the cosine of the true class", least=-1, most=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The weights of each class, whose lengths have no say."""
        return nn.Linear(backbone.dim, classes, bias=False)

    def logits(self, net: FewShotNetwork, items: Tensor) -> Tensor:
        """The scaled cosines, without a margin."""
        weights: Tensor = net.head.weight
        return self.scale * functional.normalize(net(items), dim=1) @ functional.normalize(weights, dim=1).mT

    def loss(self, net: FewShotNetwork, batch: ClassBatch, generator: Generator) -> Tensor:
        """The cross-entropy with the margin."""
        logits = self.logits(net, batch.items)
        margins = self.scale * self.margin * functional.one_hot(batch.labels, logits.shape[1])
        return functional.cross_entropy(logits - margins, batch.labels)
