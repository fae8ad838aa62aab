"""RFS: a classifier of the base classes, and generations that are distilled from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassBatch
from shotproof.models.objectives.distillation import DistilledObjective, divergence


@dataclass(frozen=True)
class Rfs(DistilledObjective):
    """Cross-entropy of a linear classifier of all training classes.

    A distilled generation starts from new weights, and its loss is `classification` times the cross-entropy plus
    `imitation` times the divergence from the teacher's predictions.
    """

    about = "classes: a linear classifier, in generations that learn from the one before"
    paper = "Tian et al., Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, 2020"
    example = "rfs(generations=2)"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "sgd",
        "lr": 0.05,
        "schedule": "step",
        "milestones": (60, 80),
        "batch": 64,
    }

    classification: float = option(0.5, "weight of the cross-entropy in a distilled generation", least=0)
    imitation: float = option(0.5, "weight of the divergence from the teacher", least=0)
    temperature: float = option(4.0, "what logits are divided by before they are compared with the teacher's", above=0)

    @property
    def starts_anew(self) -> bool:  # type: ignore[override]
        """A distilled generation is born again."""
        return self.distill

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The linear classifier."""
        return nn.Linear(backbone.dim, classes)

    def loss(self, net: FewShotNetwork, batch: ClassBatch, generator: Generator) -> Tensor:
        """The cross-entropy, and what the teacher adds."""
        logits = self.logits(net, batch.items)
        classified = functional.cross_entropy(logits, batch.labels)
        if not self.distill:
            return classified
        imitated = divergence(logits, net.head.teacher(batch.items), self.temperature)
        return self.classification * classified + self.imitation * imitated
