"""RFS and SKD: a classifier of the base classes, and generations that are distilled from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork, take_weights
from shotproof.models.objective import ClassBatch, ClassObjective, Objective, trained_by

TURNS = 4


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


@dataclass(frozen=True)
class Rfs(DistilledObjective):
    """Cross-entropy of a linear classifier of all training classes.

    A distilled generation starts from new weights, and its loss is `classification` times the cross-entropy plus
    `imitation` times the divergence from the teacher's predictions.
    """

    about = "classes: a linear classifier, in generations that learn from the one before"
    paper = "Tian et al., Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, 2020"
    example = "rfs(generations=2)"
    settings = trained_by(optimizer="sgd", lr=0.05, schedule="step", milestones=(60, 80), batch=64)

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


@dataclass(frozen=True)
class Skd(DistilledObjective):
    """Cross-entropy on items in four rotations, plus `turning` times the loss of telling the rotation from the logits.

    A distilled generation starts from the teacher's weights: its logits keep to the teacher's, and those of an item
    turned by 180 degrees, its twin, come closer, with the weight `twins`.
    """

    about = "classes: a linear classifier that also tells rotations from its logits, in generations"
    paper = "Rajasegaran et al., Self-supervised Knowledge Distillation for Few-shot Learning, 2020"
    example = "skd(generations=2)"

    turning: float = option(2.0, "weight of telling the rotation", least=0)
    twins: float = option(0.1, "weight of the distance between twins in a distilled generation", least=0)
    temperature: float = option(2.0, "what logits are divided by before they are compared with the teacher's", above=0)

    @property
    def settings(self) -> Mapping[str, Any]:  # type: ignore[override]
        """A distilled generation takes smaller steps, as it starts where its teacher ended."""
        shared = {"optimizer": "sgd", "schedule": "step", "epochs": 65, "milestones": (60,), "batch": 64}
        return {**shared, "lr": 1e-3 if self.distill else 0.05}

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The linear classifier, and a linear layer from its logits to the four rotations.

        Raises:
            InputError: items are not square.
        """
        _, height, width = backbone.input_shape
        if height != width:
            raise InputError(
                f"objective 'skd' turns items by 90 degrees, which must be square, found {height} x {width}"
            )
        head = nn.Module()
        head.classes = nn.Linear(backbone.dim, classes)
        head.turns = nn.Linear(classes, TURNS)
        return head

    def begin(self, net: FewShotNetwork, start: Model | None, classes: Sequence[str]) -> None:
        """Take the teacher and its weights."""
        super().begin(net, start, classes)
        if self.distill and start is not None:
            take_weights(net, start)

    def logits(self, net: FewShotNetwork, items: Tensor) -> Tensor:
        """Those of the training classes."""
        found: Tensor = net.head.classes(net(items))
        return found

    def loss(self, net: FewShotNetwork, batch: ClassBatch, generator: Generator) -> Tensor:
        """Of the first generation, or of one with a teacher."""
        if self.distill:
            return self._distilled(net, batch)
        logits = self.logits(net, turned(batch.items))
        turns = torch.arange(TURNS, device=logits.device).repeat_interleave(len(batch.items))
        told = functional.binary_cross_entropy_with_logits(
            net.head.turns(logits), functional.one_hot(turns, TURNS).to(logits.dtype)
        )
        return functional.cross_entropy(logits, batch.labels.repeat(TURNS)) + self.turning * told

    def _distilled(self, net: FewShotNetwork, batch: ClassBatch) -> Tensor:
        items = batch.items
        logits, twins = self.logits(net, torch.cat([items, items.rot90(2, (2, 3))])).chunk(2)
        apart: Tensor = torch.linalg.vector_norm(logits - twins, dim=1).mean()
        return divergence(logits, net.head.teacher(items), self.temperature) + self.twins * apart


def turned(items: Tensor) -> Tensor:
    """Square items [b, channels, side, side] as they are, then all turned by 90, by 180 and by 270 degrees, [4b, ...].

    Example:
        >>> turned(torch.tensor([[[[1, 2], [3, 4]]]]))[1].tolist()
        [[[2, 4], [1, 3]]]
    """
    return torch.cat([items.rot90(turns, (2, 3)) for turns in range(TURNS)])
