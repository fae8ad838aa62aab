"""RFS and SKD: a classifier of the training classes, and generations distilled from it."""

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
    """Frozen trained model that returns its logits of the training classes."""

    def __init__(self, model: Model, objective: ClassObjective) -> None:
        super().__init__()
        self.objective = objective
        self.net = model.network().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Keep the teacher in evaluation mode."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, items: Tensor) -> Tensor:
        """Compute the logits, [b, classes]."""
        return self.objective.logits(self.net, items)


@dataclass(frozen=True)
class DistilledObjective(ClassObjective):
    """Classification of the training classes with distillation over generations.

    With `distill`, the model that training starts from is the teacher. With more than one generation, the first is
    trained without a teacher, and each later one with `distill` from its predecessor.
    """

    generations: int = option(1, "number of generations; from the second on, the previous one is the teacher", least=1)
    distill: bool = option(False, "whether the model that training starts from is the teacher")

    def stages(self) -> tuple[Objective[Any], ...]:
        """Return one objective per generation."""
        distilled = replace(self, generations=1, distill=True)
        return (replace(self, generations=1), *[distilled] * (self.generations - 1))

    def begin(self, net: FewShotNetwork, start: Model | None, classes: Sequence[str]) -> None:
        """Set the teacher, or load the weights of the model that training starts from.

        Raises:
            InputError: there is no teacher, or it does not classify the training classes.
        """
        if not self.distill:
            return super().begin(net, start, classes)
        if start is None:
            raise InputError(f"objective '{self}' needs a teacher: name the model that training starts from")
        if not isinstance(start.objective, ClassObjective):
            raise InputError(
                f"model '{start.name}' cannot be a teacher: its objective does not classify the training classes"
            )
        if start.record.classes != tuple(classes):
            raise InputError(
                f"model '{start.name}' cannot be a teacher: it was trained on {len(start.record.classes)} classes, "
                f"which are not the {len(classes)} of this training"
            )
        net.head.teacher = Teacher(start, start.objective)


def divergence(logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """Compute the Kullback-Leibler divergence of softened predictions from the teacher's, times temperature squared.

    Example:
        >>> divergence(torch.zeros(2, 3), torch.zeros(2, 3), temperature=4.0).item()
        0.0
    """
    log_probabilities, teacher_log_probabilities = (
        functional.log_softmax(values / temperature, dim=1) for values in (logits, teacher_logits)
    )
    return (
        functional.kl_div(log_probabilities, teacher_log_probabilities, reduction="batchmean", log_target=True)
        * temperature**2
    )


@dataclass(frozen=True)
class Rfs(DistilledObjective):
    """Cross-entropy of a linear classifier of all training classes, optionally distilled over generations.

    A distilled generation starts from new weights; its loss is `classification` times the cross-entropy plus
    `imitation` times the divergence from the teacher's predictions.
    """

    about = "classes: linear classifier, with distillation over generations"
    paper = "Tian et al., Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, 2020"
    example = "rfs(generations=2)"
    settings = trained_by(optimizer="sgd", lr=0.05, schedule="step", milestones=(60, 80), batch=64)

    classification: float = option(0.5, "weight of the cross-entropy in a distilled generation", least=0)
    imitation: float = option(0.5, "weight of the divergence from the teacher", least=0)
    temperature: float = option(4.0, "temperature of the distillation", above=0)

    @property
    def starts_anew(self) -> bool:  # type: ignore[override]
        """Return whether weights are new: a distilled generation does not start from the teacher's weights."""
        return self.distill

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the linear classifier."""
        return nn.Linear(backbone.dim, classes)

    def loss(self, net: FewShotNetwork, batch: ClassBatch, generator: Generator) -> Tensor:
        """Compute the cross-entropy, with a teacher plus the distillation loss."""
        logits = self.logits(net, batch.items)
        class_loss = functional.cross_entropy(logits, batch.labels)
        if not self.distill:
            return class_loss
        imitation_loss = divergence(logits, net.head.teacher(batch.items), self.temperature)
        return self.classification * class_loss + self.imitation * imitation_loss


@dataclass(frozen=True)
class Skd(DistilledObjective):
    """Cross-entropy on items in four rotations, plus `turning` times the loss of predicting the rotation from logits.

    A distilled generation starts from the teacher's weights. Its loss is the divergence from the teacher's predictions,
    plus `twins` times the distance between the logits of an item and those of its twin, rotated by 180 degrees.
    """

    about = "classes: linear classifier that also predicts rotations from its logits, with distillation"
    paper = "Rajasegaran et al., Self-supervised Knowledge Distillation for Few-shot Learning, 2020"
    example = "skd(generations=2)"

    turning: float = option(2.0, "weight of the rotation loss", least=0)
    twins: float = option(0.1, "weight of the distance between twins in a distilled generation", least=0)
    temperature: float = option(2.0, "temperature of the distillation", above=0)

    @property
    def settings(self) -> Mapping[str, Any]:  # type: ignore[override]
        """Return the training settings; a distilled generation has a lower learning rate, as its teacher is trained."""
        shared = {"optimizer": "sgd", "schedule": "step", "epochs": 65, "milestones": (60,), "batch": 64}
        return {**shared, "lr": 1e-3 if self.distill else 0.05}

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the linear classifier, and a linear layer from its logits to the four rotations.

        Raises:
            InputError: items are not square.
        """
        _, height, width = backbone.input_shape
        if height != width:
            raise InputError(
                f"objective 'skd' rotates items by 90 degrees and needs square items, found {height} x {width}"
            )
        head = nn.Module()
        head.classes = nn.Linear(backbone.dim, classes)
        head.turns = nn.Linear(classes, TURNS)
        return head

    def begin(self, net: FewShotNetwork, start: Model | None, classes: Sequence[str]) -> None:
        """Set the teacher, and start from its weights."""
        super().begin(net, start, classes)
        if self.distill and start is not None:
            take_weights(net, start)

    def logits(self, net: FewShotNetwork, items: Tensor) -> Tensor:
        """Compute the logits of the training classes."""
        logits: Tensor = net.head.classes(net(items))
        return logits

    def loss(self, net: FewShotNetwork, batch: ClassBatch, generator: Generator) -> Tensor:
        """Compute the loss of the first generation, or of a distilled one."""
        if self.distill:
            return self._distilled(net, batch)
        logits = self.logits(net, rotate_items(batch.items))
        turns = torch.arange(TURNS, device=logits.device).repeat_interleave(len(batch.items))
        rotation_loss = functional.binary_cross_entropy_with_logits(
            net.head.turns(logits), functional.one_hot(turns, TURNS).to(logits.dtype)
        )
        return functional.cross_entropy(logits, batch.labels.repeat(TURNS)) + self.turning * rotation_loss

    def _distilled(self, net: FewShotNetwork, batch: ClassBatch) -> Tensor:
        items = batch.items
        logits, twins = self.logits(net, torch.cat([items, items.rot90(2, (2, 3))])).chunk(2)
        distance: Tensor = torch.linalg.vector_norm(logits - twins, dim=1).mean()
        return divergence(logits, net.head.teacher(items), self.temperature) + self.twins * distance


def rotate_items(items: Tensor) -> Tensor:
    """Rotate square items [b, channels, side, side] by 0, 90, 180 and 270 degrees, concatenated: [4b, ...].

    Example:
        >>> rotate_items(torch.tensor([[[[1, 2], [3, 4]]]]))[1].tolist()
        [[[2, 4], [1, 3]]]
    """
    return torch.cat([items.rot90(turns, (2, 3)) for turns in range(TURNS)])
