"""SKD: a classifier of the base classes that also tells how an item was turned, then distilled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.errors import InputError
from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassBatch
from shotproof.models.objectives.distillation import DistilledObjective, divergence
from shotproof.models.start import take_weights

TURNS = 4


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
