"""DN4 and FRN: comparison of a query's local descriptors with those of each class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from shotproof.core.options import option
from shotproof.functional.feature_rows import unit
from shotproof.functional.local_maps import (
    ClassDescriptors,
    descriptors,
    nearest_descriptor_scores,
    reconstruction_errors,
)
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork
from shotproof.models.objective import TaskBatch, TaskObjective, trained_by


@dataclass(frozen=True)
class Dn4(TaskObjective):
    """Cross-entropy of the sums, over a query's locations, of the k largest cosines to the class's descriptors.

    The paper's maps have 21 x 21 locations: `conv64f(pools=2, slope=0.2)` at 84 pixels.
    """

    about = "tasks: nearest local descriptors, image to class"
    paper = "Li et al., Revisiting Local Descriptor based Image-to-Class Measure for Few-shot Learning, 2019"
    example = "dn4(k=1)"
    needs = "maps"
    settings = trained_by(optimizer="adam", lr=1e-3, schedule="step", milestones=(50,), decay=0.5, tasks_per_update=1)

    k: int = option(3, "number of nearest descriptors of each class", least=1)

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Sum the largest cosines between descriptors."""
        classes = ClassDescriptors.of(unit(descriptors(support, support.dtype)), labels, way)
        return nearest_descriptor_scores(classes, unit(descriptors(query, query.dtype)), self.k)


@dataclass(frozen=True)
class FeatureMapReconstruction(TaskObjective):
    """Cross-entropy of minus gamma times the error of a ridge reconstruction of the query's map from the class's maps.

    alpha, beta and gamma are learned, starting from 0, 0 and 1; e^alpha is the factor of the penalty, e^beta that of
    the reconstruction. `apart` weights an auxiliary loss that separates the classes: the squared overlap of their
    descriptors.
    """

    about = "tasks: ridge reconstruction of the query's map from the class's, with learned penalty and scales"
    paper = "Wertheimer, Tang and Hariharan, Few-Shot Classification with Feature Map Reconstruction Networks, 2021"
    example = "frn(divide=False)"
    needs = "maps"
    settings = trained_by(epochs=150, optimizer="sgd", lr=1e-3, nesterov=True, schedule="step", milestones=(70, 120))

    apart: float = option(0.03, "weight of the loss on the overlap of the classes", least=0)
    divide: bool = option(True, "divide descriptors by the root of their number of channels")

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Initialize alpha, beta and gamma."""
        return nn.ParameterDict({"alpha": torch.zeros(()), "beta": torch.zeros(()), "gamma": torch.ones(())})

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Compute minus the scaled reconstruction errors, solved in float64."""
        alpha, beta, gamma = (net.head.get_parameter(name).double() for name in ("alpha", "beta", "gamma"))
        errors = reconstruction_errors(self._classes(support, labels, way), self._rows(query), alpha.exp(), beta.exp())
        scores: Tensor = (-gamma * errors).to(query.dtype)
        return scores

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the cross-entropy plus the loss on the overlap of the classes."""
        support, query = self.encode_batch(net, batch)
        scores = self.scores(net, support, batch.support_labels, query, batch.way)
        return self.task_loss(scores, batch.query_labels) + self.apart * self._overlap(
            support, batch.support_labels, batch.way
        )

    def _overlap(self, support: Tensor, labels: Tensor, way: int) -> Tensor:
        """Sum |S_i S_j^T|^2 over pairs of classes, with descriptors divided by their joint norm; mean over tasks."""
        rows = self._classes(support, labels, way).rows
        rows = rows / torch.linalg.vector_norm(rows, dim=(1, 2, 3), keepdim=True).clamp(min=1e-12)
        # |S_i S_j^T|^2 is the inner product of S_i^T S_i and S_j^T S_j.
        squares = (rows.mT @ rows).flatten(2)
        products = squares @ squares.mT
        pairs: Tensor = (products.sum((1, 2)) - products.diagonal(dim1=1, dim2=2).sum(1)) / 2
        return pairs.mean().to(support.dtype)

    def _classes(self, support: Tensor, labels: Tensor, way: int) -> ClassDescriptors:
        return ClassDescriptors.of(self._rows(support), labels, way)

    def _rows(self, maps: Tensor) -> Tensor:
        return descriptors(maps) / (math.sqrt(maps.shape[2]) if self.divide else 1.0)
