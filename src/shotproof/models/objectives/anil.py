"""ANIL: as MAML, but the head alone takes the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.inner_loop import adapted_linear, linear_head
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskObjective


@dataclass(frozen=True)
class Anil(TaskObjective):
    """Cross-entropy of the queries after gradient steps of a linear head, from a learned start, on the support."""

    about = "tasks: gradient steps of the head alone on the support"
    paper = "Raghu, Raghu, Bengio and Vinyals, Rapid Learning or Feature Reuse? 2020"
    example = "anil(rate=0.1)"
    symmetric = False
    settings: ClassVar[Mapping[str, Any]] = {"optimizer": "adam", "lr": 1e-3, "weight_decay": 0.0}

    rate: float = option(0.01, "learning rate within a task", above=0)
    steps: int = option(5, "gradient steps within a task, in training", least=0)
    test_steps: int = option(10, "gradient steps within a task, in validation and at test time", least=0)
    first_order: bool = option(False, "whether gradients within a task are taken as constants")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The head's start."""
        return nn.Linear(backbone.dim, way)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The logits after the steps."""
        head, steps = linear_head(net, way), self.steps if net.training else self.test_steps
        weights, biases = adapted_linear(head.weight, head.bias, support, labels, steps, self.rate, self.first_order)
        return torch.baddbmm(biases, query, weights.mT)
