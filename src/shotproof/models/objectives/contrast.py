"""SimCLR, MoCo and contrastive prototypes: contrastive learning on augmented views."""

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
    """Projection head of two layers, from vectors [b, dim] to rows of length 1, [b, outputs]; not used by the scores.

    Vectors after a ReLU share a large mean, so all cosines would be near 1 initially: batch norm removes it, as in
    SimCLR's published code and in MoCo v3.
    """

    def __init__(self, dim: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, dim, bias=False),
            nn.BatchNorm1d(dim),
            nn.ReLU(inplace=True),
            nn.Linear(dim, outputs, bias=False),
            nn.BatchNorm1d(outputs, affine=False),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """Project vectors [b, dim] to rows of length 1."""
        return functional.normalize(self.layers(vectors), dim=1)


@dataclass(frozen=True)
class SimClr(ViewObjective):
    """Contrastive cross-entropy (NT-Xent): identify the other view of an item among all other views, by cosine.

    Views are compared after a projection of two layers; scores are cosines of the backbone's vectors. Labels are not
    used.
    """

    about = "views: contrastive learning between two views of each item; without labels"
    paper = "Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, 2020"
    example = "simclr(temperature=0.1)"
    settings = trained_by(optimizer="adam", lr=1e-3, weight_decay=1e-6, schedule="cosine", epochs=200, batch=256)

    temperature: float = option(0.5, "what cosines are divided by", above=0)
    projection: int = option(128, "dimensions in which views are compared", least=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the projection head."""
        return Projection(backbone.dim, self.projection)

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """Compute the mean loss over both views of all items."""
        rows = net.head(net(torch.cat([batch.first, batch.second])))
        is_self = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
        similarities = (rows @ rows.mT / self.temperature).masked_fill(is_self, -torch.inf)
        other = torch.arange(len(rows), device=rows.device).roll(len(batch.first))
        return functional.cross_entropy(similarities, other)


@dataclass(frozen=True)
class MoCo(ViewObjective):
    """Contrastive cross-entropy (InfoNCE) with keys of a momentum encoder: identify the other view of an item.

    Negatives are the other items of the batch and, with a `queue`, the latest views of earlier batches, as in the first
    version of MoCo. On a single device, batch norm reveals which views are of the same batch, so the default is the
    batch alone, as in MoCo v3.
    """

    about = "views: contrastive learning with a momentum encoder; without labels"
    paper = "He, Fan, Wu, Xie and Girshick, Momentum Contrast for Unsupervised Visual Representation Learning, 2020"
    example = "moco(queue=4096)"
    settings = trained_by(optimizer="sgd", lr=0.03, weight_decay=1e-4, schedule="cosine", epochs=200, batch=256)

    temperature: float = option(0.2, "what cosines are divided by", above=0)
    momentum: float = option(0.99, "decay of the momentum encoder: weight of its old parameters", least=0, most=1)
    queue: int = option(0, "number of views of earlier batches used as additional negatives", least=0)
    projection: int = option(128, "dimensions in which views are compared", least=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the projection head and the momentum encoder, which the optimizer does not update."""
        head = nn.Module()
        head.projection = Projection(backbone.dim, self.projection)
        momentum_net = FewShotNetwork(copy.deepcopy(backbone), copy.deepcopy(head.projection)).requires_grad_(False)
        momentum_net.register_buffer("queue", functional.normalize(torch.randn(self.queue, self.projection), dim=1))
        head.momentum = momentum_net
        return head

    def begin(self, net: FewShotNetwork, start: Model | None, classes: Sequence[str]) -> None:
        """Initialize the momentum encoder with the weights of the trained network."""
        super().begin(net, start, classes)
        momentum_net = net.head.momentum
        momentum_net.backbone.load_state_dict(net.backbone.state_dict())
        momentum_net.head.load_state_dict(net.head.projection.state_dict())

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """Compute the mean loss over both views of all items."""
        count, views = len(batch.first), torch.cat([batch.first, batch.second])
        rows, momentum_net = net.head.projection(net(views)), net.head.momentum
        with torch.no_grad():
            momentum_rows = momentum_net.head(momentum_net(views))
        positives = torch.arange(count, device=rows.device)
        losses = [
            functional.cross_entropy(queries @ torch.cat([keys, momentum_net.queue]).mT / self.temperature, positives)
            for queries, keys in ((rows[:count], momentum_rows[count:]), (rows[count:], momentum_rows[:count]))
        ]
        if self.queue:
            momentum_net.queue = torch.cat([momentum_rows, momentum_net.queue])[: self.queue]
        return (losses[0] + losses[1]) / 2

    def after_update(self, net: FewShotNetwork) -> None:
        """Update the momentum encoder as a moving average of the trained network."""
        momentum_net = net.head.momentum
        for average, current in ((momentum_net.backbone, net.backbone), (momentum_net.head, net.head.projection)):
            with torch.no_grad():
                for parameter, trained in zip(average.parameters(), current.parameters(), strict=True):
                    parameter.lerp_(trained, 1 - self.momentum)


@dataclass(frozen=True)
class ContrastiveProto(ViewObjective):
    """Prototypical loss on the classes of the batch, plus a supervised contrastive loss.

    The first is the cross-entropy of cosines between second views and the class means of first views; the second, with
    weight `contrast`, contrasts views of the same class with all others.
    """

    about = "views: prototypical loss on the batch's classes, plus a supervised contrastive loss"
    paper = "Sgouropoulos et al., Prototypical Contrastive Learning for Improved Few-Shot Audio Classification, 2025"
    example = "contrastive-proto(contrast=0.5)"
    settings = trained_by(optimizer="adam", lr=1e-3, schedule="cosine", batch=256)

    temperature: float = option(0.1, "what cosines are divided by", above=0)
    contrast: float = option(1.0, "weight of the contrastive loss", least=0)

    def loss(self, net: FewShotNetwork, batch: ViewBatch, generator: Generator) -> Tensor:
        """Compute both losses on vectors of length 1."""
        rows = functional.normalize(net(torch.cat([batch.first, batch.second])), dim=1)
        first, second = rows.chunk(2)
        loss = prototype_loss(first, second, batch.labels, self.temperature)
        return loss + self.contrast * contrastive_loss(rows, batch.labels.repeat(2), self.temperature)


def prototype_loss(first: Tensor, second: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Compute the cross-entropy of cosines of rows `second` [b, d] with the class means of rows `first`, by labels [b].

    Every row has a column with its class mean, so each class occurs as often as it has rows; dividing by that number
    leaves one column per class, without determining which classes occur.
    """
    same_class = (labels[:, None] == labels).to(first.dtype)
    class_size = same_class.sum(1)
    means = functional.normalize(same_class @ first, dim=1)
    logits = second @ means.mT / temperature
    return (torch.logsumexp(logits - class_size.log(), dim=1) - logits.diagonal()).mean()


def contrastive_loss(rows: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Compute the supervised contrastive loss of rows [b, d] of length 1.

    It is minus the mean log-probability of the rows of the same class among all other rows (Khosla et al., Supervised
    Contrastive Learning, 2020), with the mean outside the logarithm.
    """
    is_self = torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    logits = (rows @ rows.mT / temperature).masked_fill(is_self, -torch.inf)
    log_probabilities = functional.log_softmax(logits, dim=1).masked_fill(is_self, 0.0)
    same_class = (labels[:, None] == labels) & ~is_self
    return -((log_probabilities * same_class).sum(1) / same_class.sum(1)).mean()
