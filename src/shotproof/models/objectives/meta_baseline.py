"""Meta-Baseline: a pretrained network is trained on by tasks of cosines with class means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective
from shotproof.models.prototypes import cosine_scores


@dataclass(frozen=True)
class MetaBaseline(TaskObjective):
    """Cross-entropy of cosines with class means, times a learned scale.

    It starts from a model that was trained to classify the training classes (`baseline`, `rfs`). Accuracy on training
    classes may go on rising while that on new ones falls: the best validation is kept.
    """

    about = "tasks: cosines with class means, times a learned scale; starts from a pretrained model"
    paper = "Chen, Liu, Xu, Darrell and Wang, Meta-Baseline, 2021"
    example = "meta-baseline(scale=5)"
    settings: ClassVar[Mapping[str, Any]] = {
        "shot": 1,
        "epochs": 20,
        "tasks": 800,
        "tasks_per_update": 4,
        "optimizer": "sgd",
        "lr": 1e-3,
    }

    scale: float = option(10.0, "factor of the cosines at the start", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The scale."""
        return nn.ParameterDict({"scale": torch.tensor(self.scale)})

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The scaled cosines."""
        scale: Tensor = net.head.get_parameter("scale")
        return scale * cosine_scores(support, labels, query, way)
