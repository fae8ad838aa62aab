"""SimCLR, MoCo and contrastive prototypes: views of an item, or of a class, are alike."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ViewBatch, ViewObjective, trained_by


class Projection(nn.Module):
    """Two layers from vectors [b, dim] to rows of length 1, [b, to]; scores do without it.

    Vectors behind a ReLU have a large mean in common, so that all cosines are near 1 at the start: batch norm takes it
    away, as in SimCLR's own code and in MoCo v3.
    """

    def __init__(self, dim: int, to: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, dim, bias=False),
            nn.BatchNorm1d(dim),
            nn.ReLU(inplace=True),
            nn.Linear(dim, to, bias=False),
            nn.BatchNorm1d(to, affine=False),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """The rows."""
        return functional.normalize(self.layers(vectors), dim=1)


@dataclass(frozen=True)
class SimClr(ViewObjective):
    """Cross-entropy of telling the other view of an item among all other views of the batch, by cosine.

    Views are compared after a projection of two layers; scores are cosines of the backbone's vectors. Labels are not
    used.
    """

    about = "views: each item's two views are told from those of all others; without labels"
    paper = "Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, 2020"
    example = "simclr(temperature=0.1)"
    settings = trained_by(optimizer="adam", lr=1e-3, weight_decay=1e-6, schedule="cosine", epochs=200, batch=256)

    temperature: float = option(0.5, "what cosines are divided by", above=0)
    projection: int = option(128, "dimensions in which views are compared", least=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """The projection."""
        return Projection(backbone.dim, self.projection)

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """The mean over both views of all items."""
        rows = net.head(net(torch.cat([batch.first, batch.second])))
        itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        similarities = (rows @ rows.mT / self.temperature).masked_fill(itself, -torch.inf)
        other = torch.arange(len(rows), device=rows.device).roll(len(batch.first))
        return functional.cross_entropy(similarities, other)


@dataclass(frozen=True)
class MoCo(ViewObjective):
    """Cross-entropy of telling the other view of an item, as a momentum network sees it, among those of the batch.

    With a `queue` also among the latest views of earlier batches, as in MoCo's first form. On one device batch norm
    tells views of one batch from those of others, so that the batch alone, as in MoCo v3, is the default.
    """

    about = "views: each item's views are told from others, seen by a momentum network; without labels"
    paper = "He, Fan, Wu, Xie and Girshick, Momentum Contrast for Unsupervised Visual Representation Learning, 2020"
    example = "moco(queue=4096)"
    settings = trained_by(optimizer="sgd", lr=0.03, weight_decay=1e-4, schedule="cosine", epochs=200, batch=256)

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


@dataclass(frozen=True)
class ContrastiveProto(ViewObjective):
    """Prototypes of the batch's classes, and a supervised contrastive loss beside them.

    Cross-entropy of cosines between second views and the class means of first views, plus `contrast` times that of
    telling the views of the same class among all others.
    """

    about = "views: class means of the batch, and a supervised contrastive loss"
    paper = "Sgouropoulos et al., Prototypical Contrastive Learning for Improved Few-Shot Audio Classification, 2025"
    example = "contrastive-proto(contrast=0.5)"
    settings = trained_by(optimizer="adam", lr=1e-3, schedule="cosine", batch=256)

    temperature: float = option(0.1, "what cosines are divided by", above=0)
    contrast: float = option(1.0, "weight of the contrastive loss", least=0)

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """Both losses, on vectors of length 1."""
        rows = functional.normalize(net(torch.cat([batch.first, batch.second])), dim=1)
        first, second = rows.chunk(2)
        told = prototype_loss(first, second, batch.labels, self.temperature)
        return told + self.contrast * contrastive_loss(rows, batch.labels.repeat(2), self.temperature)


def prototype_loss(first: Tensor, second: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of cosines of rows `second` [b, d] with the class means of rows `first`, by labels [b].

    Every row has a column with the mean of its class, which counts as many times as the class has rows: dividing by
    that number leaves one column per class, without a look at which classes there are.
    """
    alike = (labels[:, None] == labels).to(first.dtype)
    members = alike.sum(1)
    means = functional.normalize(alike @ first, dim=1)
    logits = second @ means.mT / temperature
    return (torch.logsumexp(logits - members.log(), dim=1) - logits.diagonal()).mean()


def contrastive_loss(rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Minus the mean log-probability of the rows of the same class among all other rows, of rows [b, d] of length 1.

    Khosla et al., Supervised Contrastive Learning, 2020, with the mean outside of the logarithm.
    """
    itself = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    logits = (rows @ rows.mT / temperature).masked_fill(itself, -torch.inf)
    likely = functional.log_softmax(logits, dim=1).masked_fill(itself, 0.0)
    alike = (labels[:, None] == labels) & ~itself
    return -((likely * alike).sum(1) / alike.sum(1)).mean()
