"""MTL: frozen convolutions with a learned scale and shift, and a learned start of the head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.inner_loop import adapted_linear, linear_head, normalized_by
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective


class ScaledConv2d(nn.Conv2d):
    """A convolution by its weights times `scale` [out, in, 1, 1], with `shift` [out] added.

    Both belong to the head's module, so that the backbone's weights keep their names, and any model may be the start.
    """

    learned: tuple[nn.Parameter, nn.Parameter]

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        scale, shift = self.learned
        convolved: Tensor = super()._conv_forward(input, weight * scale, shift if bias is None else bias + shift)
        return convolved


class MtlHead(nn.Module):
    """The linear head's start, and the scale and shift of each convolution."""

    def __init__(self, backbone: BackboneNetwork, way: int) -> None:
        super().__init__()
        self.linear = nn.Linear(backbone.dim, way)
        self.scales, self.shifts = nn.ParameterList(), nn.ParameterList()
        for module in backbone.modules():
            if isinstance(module, nn.Conv2d):
                self.scales.append(torch.ones(*module.weight.shape[:2], 1, 1))
                self.shifts.append(torch.zeros(module.out_channels))
                module.__class__ = ScaledConv2d
                module.learned = (self.scales[-1], self.shifts[-1])  # type: ignore[assignment]


@dataclass(frozen=True)
class Mtl(TaskObjective):
    """Cross-entropy of the queries after gradient steps of the head, into its start and the convolutions' scales.

    The backbone stays as it is, batch norm included: start from a trained model.
    """

    about = "tasks: learned scales and shifts of a trained backbone; start from a model"
    paper = "Sun, Liu, Chua and Schiele, Meta-Transfer Learning for Few-Shot Learning, 2019"
    example = "mtl(steps=10)"
    symmetric = False
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "adam",
        "lr": 1e-4,
        "weight_decay": 0.0,
        "tasks": 100,
        "tasks_per_update": 1,
        "schedule": "step",
        "milestones": (10, 20, 30, 40, 50, 60, 70, 80, 90),
        "decay": 0.5,
    }

    rate: float = option(0.01, "learning rate within a task", above=0)
    steps: int = option(50, "gradient steps within a task, in training", least=0)
    test_steps: int = option(100, "gradient steps within a task, in validation and at test time", least=0)
    first_order: bool = option(True, "whether gradients within a task are taken as constants")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The head's start, and what scales and shifts the backbone's convolutions from now on."""
        return MtlHead(backbone, way)

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """Scales and shifts, and the head's start at ten times their learning rate."""
        assert isinstance(net.head, MtlHead)
        return [([*net.head.scales, *net.head.shifts], 1.0), ([*net.head.linear.parameters()], 10.0)]

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """As of other tasks, under the backbone's own statistics."""
        with normalized_by(net, "running"):
            return super().loss(net, batch, generator)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """The logits after the steps."""
        head, steps = linear_head(net, way), self.steps if net.training else self.test_steps
        weights, biases = adapted_linear(head.weight, head.bias, support, labels, steps, self.rate, self.first_order)
        return torch.baddbmm(biases, query, weights.mT)
