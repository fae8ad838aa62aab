"""Distillation: a network learns the logits of another one, its teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassObjective, Objective


class Teacher(nn.Module):
    """A trained model that gives its logits of the training classes, and never changes."""

    def __init__(self, model: Model, objective: ClassObjective) -> None:
        super().__init__()
        self.objective = objective
        self.net = model.network().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """It stays in evaluation mode."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, items: Tensor) -> Tensor:
        """The logits, [b, classes]."""
        return self.objective.logits(self.net, items)


@dataclass(frozen=True)
class DistilledObjective(ClassObjective):
    """A classification of the training classes, of which later generations learn from the one before.

    With `distill` the model that training starts from is the teacher. With more than one generation the first is
    trained without a teacher, and each later one with `distill` from the one before.
    """

    generations: int = option(
        1, "how many are trained, each from the second on with the one before as its teacher", least=1
    )
    distill: bool = option(False, "whether the model that training starts from is its teacher")

    def stages(self) -> tuple[Objective[Any], ...]:
        """One objective per generation."""
        later = replace(self, generations=1, distill=True)
        return (replace(self, generations=1), *[later] * (self.generations - 1))

    def begin(self, net: FewShotNetwork, start: Model | None, classes: Sequence[str]) -> None:
        """Take the teacher, or the weights of the model that training starts from.

        Raises:
            InputError: there is no teacher, or it does not classify the training classes.
        """
        if not self.distill:
            return super().begin(net, start, classes)
        if start is None:
            raise InputError(f"objective '{self}' learns from a teacher: name the model that training starts from")
        if not isinstance(start.objective, ClassObjective):
            raise InputError(
                f"model '{start.name}' cannot be a teacher: its objective has no logits of the training classes"
            )
        if start.record.classes != tuple(classes):
            raise InputError(
                f"model '{start.name}' cannot be a teacher: it was trained on {len(start.record.classes)} classes, "
                f"which are not the {len(classes)} of this training"
            )
        net.head.teacher = Teacher(start, start.objective)


def divergence(logits: Tensor, taught: Tensor, temperature: float) -> Tensor:
    """Kullback-Leibler divergence of softened predictions from the teacher's, times the temperature squared.

    Example:
        >>> divergence(torch.zeros(2, 3), torch.zeros(2, 3), temperature=4.0).item()
        0.0
    """
    found, expected = (functional.log_softmax(each / temperature, dim=1) for each in (logits, taught))
    return functional.kl_div(found, expected, reduction="batchmean", log_target=True) * temperature**2
