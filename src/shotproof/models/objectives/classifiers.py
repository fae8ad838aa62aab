"""Baseline, Baseline++ and Neg-Cosine: classifiers of the training classes, whose features transfer to new classes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional.feature_rows import almost_unit
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import ClassBatch, ClassObjective, trained_by

MANY_CLASSES = 200  # above this number, cosines get a larger scale, as in the published code


@dataclass(frozen=True)
class Baseline(ClassObjective):
    """Cross-entropy of a linear classifier of all training classes."""

    about = "classes: linear classifier of the training classes"
    paper = "Chen, Liu, Kira, Wang and Huang, A Closer Look at Few-shot Classification, 2019"
    settings = trained_by(optimizer="adam", lr=1e-3, batch=128, keep="last")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the linear classifier."""
        return nn.Linear(backbone.dim, classes)


@dataclass(frozen=True)
class BaselinePlusPlus(ClassObjective):
    """Cross-entropy of scale g cos(v, x), with a direction v and a length g of each training class, both learned."""

    about = "classes: cosine classifier of the training classes"
    paper = "Chen, Liu, Kira, Wang and Huang, A Closer Look at Few-shot Classification, 2019"
    example = "baseline++(scale=10)"
    settings = trained_by(optimizer="sgd", lr=0.01, schedule="cosine", batch=128, keep="last")

    scale: float | None = option(None, "factor of the cosines; None: 2 for up to 200 classes, else 10", above=0)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the cosine classifier."""
        scale = self.scale or (2.0 if classes <= MANY_CLASSES else 10.0)
        return CosineClassifier(backbone.dim, classes, scale)


class CosineClassifier(nn.Module):
    """Classifier with logits scale g cos(v, x): a weight-normalized linear layer on vectors of length 1."""

    def __init__(self, dim: int, classes: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.directions = nn.Parameter(nn.Linear(dim, classes, bias=False).weight.detach())
        self.lengths = nn.Parameter(self.directions.detach().norm(dim=1))

    def forward(self, vectors: Tensor) -> Tensor:
        """Compute the logits [b, classes] of vectors [b, dim]."""
        return self.scale * self.lengths * (almost_unit(vectors) @ nn.functional.normalize(self.directions, dim=1).mT)


@dataclass(frozen=True)
class NegCosine(ClassObjective):
    """Cross-entropy of scale cos(w, x), with the margin subtracted from the cosine of the true class.

    A negative margin raises that cosine, so training classes are separated less, which helps on unseen classes.
    """

    about = "classes: cosine classifier with a negative margin"
    paper = "Liu et al., Negative Margin Matters: Understanding Margin in Few-shot Classification, 2020"
    example = "neg-cosine(margin=-0.01)"
    settings = trained_by(
        optimizer="adam", lr=3e-3, weight_decay=1e-4, schedule="cosine", warm_up=100.0, epochs=400, batch=256
    )

    scale: float = option(30.0, "factor of the cosines", above=0)
    margin: float = option(-0.02, "margin subtracted from the cosine of the true class", least=-1, most=1)

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the weights of each class, whose lengths do not matter."""
        return nn.Linear(backbone.dim, classes, bias=False)

    def logits(self, net: FewShotNetwork, items: Tensor) -> Tensor:
        """Compute the scaled cosines, without the margin."""
        weights: Tensor = net.head.weight
        return self.scale * functional.normalize(net(items), dim=1) @ functional.normalize(weights, dim=1).mT

    def loss(self, net: FewShotNetwork, batch: ClassBatch, generator: Generator) -> Tensor:
        """Compute the cross-entropy with the margin."""
        logits = self.logits(net, batch.items)
        margins = self.scale * self.margin * functional.one_hot(batch.labels, logits.shape[1])
        return functional.cross_entropy(logits - margins, batch.labels)
