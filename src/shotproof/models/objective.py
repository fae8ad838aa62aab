"""Interface of training objectives, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shotproof.core.options import Component
from shotproof.core.registry import Registry
from shotproof.functional.feature_rows import cosine_scores
from shotproof.functional.local_maps import split_queries
from shotproof.models.backbone import BackboneNetwork
from shotproof.models.network import FewShotNetwork, Needs, take_weights

if TYPE_CHECKING:
    from shotproof.models.model import Model

TrainsOn = Literal["classes", "tasks", "views"]


@dataclass(frozen=True)
class ClassBatch:
    """Items [b, channels, height, width] with the indices of their training classes, [b]."""

    items: Tensor
    labels: Tensor


@dataclass(frozen=True)
class TaskBatch:
    """Batch of B tasks of one shape.

    support, query: items, [B, n, channels, height, width] and [B, m, ...]
    support_labels, query_labels: 0 to way - 1 within the task, [B, n] and [B, m]
    classes: index of each class of a task among the training classes, [B, way]
    extra_items: additional items of the training classes, as many as the objective's `items_beside`
    """

    support: Tensor
    support_labels: Tensor
    query: Tensor
    query_labels: Tensor
    classes: Tensor
    extra_items: ClassBatch | None = None

    @property
    def way(self) -> int:
        """Return the number of classes of each task."""
        return self.classes.shape[1]

    @property
    def query_classes(self) -> Tensor:
        """Return the index of each query's class among the training classes, [B, m]."""
        return self.classes.gather(1, self.query_labels)


@dataclass(frozen=True)
class ViewBatch:
    """Two random augmentations of the same items, [b, channels, height, width] each, with the items' classes, [b]."""

    first: Tensor
    second: Tensor
    labels: Tensor


Batch = TypeVar("Batch", ClassBatch, TaskBatch, ViewBatch)


def trained_by(**settings: Any) -> Mapping[str, Any]:
    """Collect the training settings of an objective's paper: values of `TrainingSettings` by name, read-only."""
    return MappingProxyType(settings)


class Objective(Component, ABC, Generic[Batch]):
    """Training objective; a subclass is a frozen dataclass of its options, derived from one of the three below.

    trains_on: kind of its batches
    needs: input of its scores: vectors, maps, or the items themselves if the network adapts to each task
    family: whether a query's scores may depend on the other queries
    symmetric: whether permuting the classes permutes the scores
    items_beside: number of items of the training classes added to each batch of tasks
    starts_anew: whether weights are newly initialized even if training starts from a model, which is then the teacher
    settings: training settings of its paper, as values of `TrainingSettings`, used unless a user sets others
    """

    kind: ClassVar[str] = "objective"
    trains_on: ClassVar[TrainsOn]
    needs: ClassVar[Needs] = "vectors"
    family: ClassVar[Literal["inductive", "transductive"]] = "inductive"
    symmetric: ClassVar[bool] = True
    items_beside: int = 0
    starts_anew: bool = False
    settings: ClassVar[Mapping[str, Any]] = trained_by()

    def prepare(self, backbone: BackboneNetwork, classes: int, way: int) -> nn.Module:
        """Build the module of learned parameters besides the backbone, drawn from PyTorch's global generator.

        A submodule named `teacher` is not written to any file, one named `momentum` is not written to model files.

        Args:
            backbone: its `dim` and `map_shape` determine the head's input
            classes: number of training classes
            way: number of classes of a task
        """
        return nn.Module()

    def stages(self) -> tuple[Objective[Any], ...]:
        """Return the objectives to train in sequence, each from the previous model; by default only this one."""
        return (self,)

    def begin(self, net: FewShotNetwork, start: Model | None, classes: Sequence[str]) -> None:
        """Initialize the network before the first update: load the weights of the model that training starts from.

        Args:
            net: network with randomly initialized weights
            start: model that training starts from, if any
            classes: training classes in order
        """
        if start is not None:
            take_weights(net, start)

    @abstractmethod
    def loss(self, net: FewShotNetwork, batch: Batch, generator: Generator) -> Tensor:
        """Compute the loss of a batch, a scalar: the mean over tasks or items.

        Args:
            net: network in training mode
            batch: augmented batch on the network's device
            generator: generator of random numbers on the same device
        """

    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score each query for each class, in validation and in `model:` methods; the largest score wins.

        By default, cosines with the class means. If `needs` is items, it may adapt the network by `torch.func`, and
        must not change its weights.

        Args:
            net: network, in evaluation mode unless `loss` calls this
            support: vectors [B, n, d], maps [B, n, d, h, w], or items [B, n, channels, height, width], by `needs`
            labels: [B, n], 0 to way - 1
            query: [B, m, ...]
            way: number of classes of each task

        Returns:
            The scores, [B, m, way].
        """
        return cosine_scores(support, labels, query, way)

    def after_update(self, net: FewShotNetwork) -> None:
        """Update further state after each optimizer step, e.g. a momentum encoder; does nothing by default."""

    def parameter_groups(self, net: FewShotNetwork) -> list[tuple[list[nn.Parameter], float]]:
        """Return groups of trained parameters with a factor of the learning rate; by default all, with factor 1."""
        return [([parameter for parameter in net.parameters() if parameter.requires_grad], 1.0)]


class ClassObjective(Objective[ClassBatch]):
    """Objective on labeled items of all training classes. The default loss is the cross-entropy."""

    trains_on = "classes"

    def logits(self, net: FewShotNetwork, items: Tensor) -> Tensor:
        """Compute the logits of the training classes, [b, classes], from items [b, ...]."""
        logits: Tensor = net.head(net(items, self.needs))
        return logits

    def loss(self, net: FewShotNetwork, batch: ClassBatch, generator: Generator) -> Tensor:
        """Compute the cross-entropy of the logits."""
        return functional.cross_entropy(self.logits(net, batch.items), batch.labels)


class TaskObjective(Objective[TaskBatch]):
    """Objective on tasks. The default loss is the cross-entropy of its scores."""

    trains_on = "tasks"

    @abstractmethod
    def scores(self, net: FewShotNetwork, support: Tensor, labels: Tensor, query: Tensor, way: int) -> Tensor:
        """Score each query for each class, as in `Objective`."""

    def loss(self, net: FewShotNetwork, batch: TaskBatch, generator: Generator) -> Tensor:
        """Compute the loss of the scores over all queries of all tasks."""
        support, query = self.encode_batch(net, batch)
        scores = self.scores(net, support, batch.support_labels, query, batch.way)
        return self.task_loss(scores, batch.query_labels)

    def task_loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Compute the mean loss of scores [B, m, classes] with labels [B, m]; the cross-entropy by default."""
        return functional.cross_entropy(scores.flatten(0, 1), labels.flatten())

    def encode_batch(self, net: FewShotNetwork, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Compute the input of `scores` for support and query in one pass of the backbone."""
        if self.needs == "items":
            return batch.support, batch.query
        count = batch.support.shape[1]
        both = net(torch.cat([batch.support, batch.query], 1), self.needs)
        return both[:, :count], both[:, count:]


def query_parts(net: FewShotNetwork, query: Tensor, numbers_per_query: int) -> Iterable[Tensor]:
    """Split queries [B, m, ...] to fit in memory, if a query of one task takes `numbers_per_query` numbers.

    In training mode there is one part: batch norm must see all queries at once.
    """
    return [query] if net.training else split_queries(query, numbers_per_query)


class ViewObjective(Objective[ViewBatch]):
    """Objective on two random views of each item."""

    trains_on = "views"


objectives: Registry[Objective[Any]] = Registry(
    "objective",
    {
        "anil": "shotproof.models.objectives.gradient_steps:Anil",
        "baseline": "shotproof.models.objectives.classifiers:Baseline",
        "baseline++": "shotproof.models.objectives.classifiers:BaselinePlusPlus",
        "boil": "shotproof.models.objectives.gradient_steps:Boil",
        "can": "shotproof.models.objectives.can:CrossAttention",
        "contrastive-proto": "shotproof.models.objectives.contrast:ContrastiveProto",
        "deepbdc-stl": "shotproof.models.objectives.deepbdc_stl:DeepBdcStl",
        "dn4": "shotproof.models.objectives.descriptors:Dn4",
        "feat": "shotproof.models.objectives.prototypes:Feat",
        "frn": "shotproof.models.objectives.descriptors:FeatureMapReconstruction",
        "gnn": "shotproof.models.objectives.graphs:GraphNetwork",
        "leo": "shotproof.models.objectives.leo:Leo",
        "maml": "shotproof.models.objectives.gradient_steps:Maml",
        "matching": "shotproof.models.objectives.matching:Matching",
        "meta-baseline": "shotproof.models.objectives.prototypes:MetaBaseline",
        "metaoptnet": "shotproof.models.objectives.solvers:MetaOptNet",
        "moco": "shotproof.models.objectives.contrast:MoCo",
        "mtl": "shotproof.models.objectives.gradient_steps:Mtl",
        "neg-cosine": "shotproof.models.objectives.classifiers:NegCosine",
        "protonet": "shotproof.models.objectives.prototypes:ProtoNet",
        "r2d2": "shotproof.models.objectives.solvers:R2d2",
        "relationnet": "shotproof.models.objectives.relationnet:RelationNet",
        "renet": "shotproof.models.objectives.renet:RelationalEmbedding",
        "rfs": "shotproof.models.objectives.distillation:Rfs",
        "simclr": "shotproof.models.objectives.contrast:SimClr",
        "skd": "shotproof.models.objectives.distillation:Skd",
        "tpn": "shotproof.models.objectives.graphs:Propagation",
        "versa": "shotproof.models.objectives.versa:Versa",
    },
)
