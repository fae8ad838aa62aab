"""ProtoNet: each query belongs to the nearest class mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from shotproof.core.options import option
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective
from shotproof.models.prototypes import class_means, squared_distances


@dataclass(frozen=True)
class ProtoNet(TaskObjective):
    """Cross-entropy of minus the squared Euclidean distances from queries to class means, divided by `temperature`."""

    about = "tasks: nearest class mean, Euclidean"
    paper = "Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, 2017"
    example = "protonet(temperature=64)"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 1e-3,
        "schedule": "step",
        "milestones": (20, 40, 60, 80),
        "decay": 0.5,
    }

    temperature: float = option(1.0, "what squared distances are divided by", above=0)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Minus squared distances to the class means."""
        return -squared_distances(query, class_means(support, labels, way)) / self.temperature
