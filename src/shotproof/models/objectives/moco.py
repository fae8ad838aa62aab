"""MoCo: views are told from others by a network that follows the trained one slowly."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ViewBatch, ViewObjective
from shotproof.models.objectives.contrast import Projection


@dataclass(frozen=True)
class MoCo(ViewObjective):
    """Cross-entropy of telling the other view of an item, as a momentum network sees it, among those of the batch.

    With a `queue` also among the latest views of earlier batches, as in MoCo's first form. On one device batch norm
    tells views of one batch from those of others, so that the batch alone, as in MoCo v3, is the default.
    """

    about = "views: each item's views are told from others, seen by a momentum network; without labels"
    paper = "He, Fan, Wu, Xie and Girshick, Momentum Contrast for Unsupervised Visual Representation Learning, 2020"
    example = "moco(queue=4096)"
    settings: ClassVar[Mapping[str, Any]] = {
        "optimizer": "sgd",
        "lr": 0.03,
        "weight_decay": 1e-4,
        "schedule": "cosine",
        "epochs": 200,
        "batch": 256,
    }

    temperature: float = option(0.2, "what cosines are divided by", above=0)
    momentum: float = option(0.99, "how much of itself the momentum network keeps in each update", least=0, most=1)
    queue: int = option(0, "how many views of earlier batches there are beside the batch", least=0)
    projection: int = option(128, "dimensions in which views are compared", least=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The projection, and the momentum network, which no optimizer changes."""
        head = nn.Module()
        head.projection = Projection(backbone.dim, self.projection)
        following = FewShotNetwork(copy.deepcopy(backbone), copy.deepcopy(head.projection)).requires_grad_(False)
        following.register_buffer("queue", functional.normalize(torch.randn(self.queue, self.projection), dim=1))
        head.momentum = following
        return head

    def begin(self, net: FewShotNetwork, start: Model | None, classes: Sequence[str]) -> None:
        """The momentum network begins where the trained one does."""
        super().begin(net, start, classes)
        following = net.head.momentum
        following.backbone.load_state_dict(net.backbone.state_dict())
        following.head.load_state_dict(net.head.projection.state_dict())

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """The mean over both views of all items."""
        count, views = len(batch.first), torch.cat([batch.first, batch.second])
        rows, following = net.head.projection(net(views)), net.head.momentum
        with torch.no_grad():
            seen = following.head(following(views))
        places = torch.arange(count, device=rows.device)
        losses = [
            functional.cross_entropy(asked @ torch.cat([others, following.queue]).mT / self.temperature, places)
            for asked, others in ((rows[:count], seen[count:]), (rows[count:], seen[:count]))
        ]
        if self.queue:
            following.queue = torch.cat([seen, following.queue])[: self.queue]
        return (losses[0] + losses[1]) / 2

    def after_update(self, net: FewShotNetwork) -> None:
        """The momentum network takes a step toward the trained one."""
        following = net.head.momentum
        for slow, quick in ((following.backbone, net.backbone), (following.head, net.head.projection)):
            with torch.no_grad():
                for kept, new in zip(slow.parameters(), quick.parameters(), strict=True):
                    kept.lerp_(new, 1 - self.momentum)
