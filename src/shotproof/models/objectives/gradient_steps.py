"""MAML, ANIL, BOIL and MTL: a learned initialization, adapted by a few gradient steps on the support."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.inner_loop import BatchNorm, adapted, adapted_linear, linear_head, normalized_by
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, trained_by

BATCH_NORM = "batch norm by the statistics of each batch, or by the running ones of the model that training starts from"


class StepsOnItems(TaskObjective):
    """Inner loop on a backbone and a linear head; `adapts` selects the adapted parameters, a subclass has the options.

    With the statistics of each batch, as in the papers, a query's scores depend on the other queries of its task.
    """

    needs = "items"
    symmetric = False

    rate: float
    first_order: bool
    batch_norm: BatchNorm

    @abstractmethod
    def adapts(self, parameter: str) -> bool:
        """Return whether the inner loop adapts a parameter of the network."""

    @abstractmethod
    def step_count(self, net: FewShotNetwork) -> int:
        """Return the number of inner-loop steps, in training or in evaluation mode."""

    @property
    def family(self) -> Literal["inductive", "transductive"]:  # type: ignore[override]
        """Return `transductive` with batch statistics, through which queries affect each other's scores."""
        return "transductive" if self.batch_norm == "batch" else "inductive"

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the initial head."""
        return nn.Linear(backbone.dim, way)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the logits after the inner-loop steps."""
        linear_head(net, way)
        score = adapted(
            net,
            support,
            labels,
            adapts=self.adapts,
            steps=self.step_count(net),
            rate=self.rate,
            first_order=self.first_order,
            batch_norm=self.batch_norm,
        )
        return score(query)


@dataclass(frozen=True)
class Maml(StepsOnItems):
    """Cross-entropy of the queries after inner-loop gradient steps of all weights on the support.

    With the statistics of each batch, as in the paper, a query's scores depend on the other queries of its task.
    """

    about = "tasks: inner loop on all weights"
    paper = "Finn, Abbeel and Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, 2017"
    example = "maml(rate=0.1, first_order=True)"
    settings = trained_by(optimizer="adam", lr=1e-3, weight_decay=0.0, tasks_per_update=2)

    rate: float = option(0.01, "learning rate of the inner loop", above=0)
    steps: int = option(5, "inner-loop steps in training", least=0)
    test_steps: int = option(10, "inner-loop steps in validation and at test time", least=0)
    first_order: bool = option(False, "first-order approximation: no second-order gradients")
    batch_norm: BatchNorm = option("batch", BATCH_NORM)

    def adapts(self, parameter: str) -> bool:
        """Return true: all parameters are adapted."""
        return True

    def step_count(self, net: FewShotNetwork) -> int:
        """Return the number of steps that the options set."""
        return self.steps if net.training else self.test_steps


@dataclass(frozen=True)
class Anil(TaskObjective):
    """Cross-entropy of the queries after inner-loop gradient steps of a linear head from a learned initialization."""

    about = "tasks: inner loop on the head alone"
    paper = "Raghu, Raghu, Bengio and Vinyals, Rapid Learning or Feature Reuse? 2020"
    example = "anil(rate=0.1)"
    symmetric = False
    settings = trained_by(optimizer="adam", lr=1e-3, weight_decay=0.0)

    rate: float = option(0.01, "learning rate of the inner loop", above=0)
    steps: int = option(5, "inner-loop steps in training", least=0)
    test_steps: int = option(10, "inner-loop steps in validation and at test time", least=0)
    first_order: bool = option(False, "first-order approximation: no second-order gradients")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the initial head."""
        return nn.Linear(backbone.dim, way)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute the logits after the inner-loop steps."""
        head, steps = linear_head(net, way), self.steps if net.training else self.test_steps
        weights, biases = adapted_linear(head.weight, head.bias, support, labels, steps, self.rate, self.first_order)
        return torch.baddbmm(biases, query, weights.mT)


@dataclass(frozen=True)
class Boil(StepsOnItems):
    """Cross-entropy of the queries after an inner-loop gradient step of the backbone, with the head fixed.

    With the statistics of each batch, as in the paper, a query's scores depend on the other queries of its task.
    """

    about = "tasks: inner loop on the backbone alone"
    paper = "Oh, Yoo, Kim and Yun, BOIL: Towards Representation Change for Few-shot Learning, 2021"
    example = "boil(rate=0.3)"
    settings = trained_by(optimizer="adam", lr=6e-4, weight_decay=0.0)

    rate: float = option(0.5, "learning rate of the inner loop; 0.3 for ResNets", above=0)
    steps: int = option(1, "inner-loop steps", least=0)
    first_order: bool = option(False, "first-order approximation: no second-order gradients")
    batch_norm: BatchNorm = option("batch", BATCH_NORM)

    def adapts(self, parameter: str) -> bool:
        """Return whether the parameter is one of the backbone's."""
        return parameter.startswith("backbone.")

    def step_count(self, net: FewShotNetwork) -> int:
        """Return the number of steps that the options set."""
        return self.steps


class ScaledConv2d(nn.Conv2d):
    """Convolution whose weights are multiplied by `scale` [out, in, 1, 1], with `shift` [out] added to the output.

    Both belong to the head's module, so that the backbone's weights keep their names and training may start from any
    model.
    """

    learned: tuple[nn.Parameter, nn.Parameter]

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        scale, shift = self.learned
        convolved: Tensor = super()._conv_forward(input, weight * scale, shift if bias is None else bias + shift)
        return convolved


class MtlHead(nn.Module):
    """Initial linear head, and the scale and shift of each convolution."""

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
class Mtl(Anil):
    """Cross-entropy of the queries after inner-loop steps of the head; learns its initialization, scales and shifts.

    The scales and shifts are those of the backbone's convolutions. The backbone is frozen, including batch norm: start
    from a trained model.
    """

    about = "tasks: learned scales and shifts of a trained backbone; start from a model"
    paper = "Sun, Liu, Chua and Schiele, Meta-Transfer Learning for Few-Shot Learning, 2019"
    example = "mtl(steps=10)"
    settings = trained_by(
        optimizer="adam",
        lr=1e-4,
        weight_decay=0.0,
        tasks=100,
        tasks_per_update=1,
        schedule="step",
        milestones=(10, 20, 30, 40, 50, 60, 70, 80, 90),
        decay=0.5,
    )

    steps: int = option(50, "inner-loop steps in training", least=0)
    test_steps: int = option(100, "inner-loop steps in validation and at test time", least=0)
    first_order: bool = option(True, "first-order approximation: no second-order gradients")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the initial head and the scales and shifts, and attach the latter to the backbone's convolutions."""
        return MtlHead(backbone, way)

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """Return the scales and shifts, and the initial head with ten times their learning rate."""
        assert isinstance(net.head, MtlHead)
        return [([*net.head.scales, *net.head.shifts], 1.0), ([*net.head.linear.parameters()], 10.0)]

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the loss with the running statistics of the backbone."""
        with normalized_by(net, "running"):
            return super().loss(net, batch, generator)
