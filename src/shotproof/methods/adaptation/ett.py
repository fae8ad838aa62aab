"""eTT: further keys and values for every attention of a vision transformer, and offsets, tuned on the support."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from shotproof.core.errors import Mismatch
from shotproof.core.options import option
from shotproof.methods.adaptation import descent
from shotproof.methods.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.methods.adaptation.prefixed_transformer import PrefixedTransformer
from shotproof.methods.shared import task_draws
from shotproof.models.inner_loop import Weights
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

PROJECTED = 64  # dimensions in which classes are held to where they began
TEMPERATURE, TEACHER_TEMPERATURE, MOMENTUM = 0.1, 0.04, 0.9
EPSILON = 1e-4  # of AdamW
CLASSES, OFFSETS, FEATURES = "classes", "offsets", "features"


@dataclass(frozen=True)
class Ett(Adaptation):
    """Score: cosines with class means after steps of AdamW on prefixes and adapters alone.

    Each class has a vector, first the mean of its patches as they enter the first block, each patch by how much the
    class token attends to it in the last one. Two layers with a tanh between make of it one key and one value for every
    attention. Each block adds an offset, first zero, after attention and at its end; features go through a linear map,
    first the identity. The loss is the cross-entropy of the support under its own class means, logits are cosines
    times 10, and `pull` times a cross-entropy in the manner of DINO that holds the vectors of classes to where they
    began. The linear map learns at the `rate`, all else at half of it.
    """

    about = "prefixes and offsets in every block of a vision transformer, tuned on the support"
    paper = "Xu et al., Exploring Efficient Few-shot Adaptation for Vision Transformers, 2022"
    example = "ett(rate=0.0005)"
    rates = (5e-4, 1e-3, 5e-3)

    steps: int = option(40, "steps of AdamW", least=0)
    rate: float = option(1e-3, "learning rate of the map of features, twice that of all else", above=0)
    pull: float = option(0.1, "weight of what holds the vectors of classes to where they began", least=0)

    def require_model(self, model: Model) -> None:
        """Refuse networks other than vision transformers of transformers."""
        try:
            PrefixedTransformer(model.network(), str(model.backbone))
        except Mismatch as error:
            raise error.placed(f"method '{self.spelling}': ") from error

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """The network's own weights stay."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        transformer, plain = PrefixedTransformer(net, str(model.backbone)), descent.vectors_of(net)
        layers, width = len(transformer.layers), transformer.width

        def call(own: Weights, items: Tensor) -> Tensor:
            hidden = _linear(own, "first", own[CLASSES]).tanh()
            prefixes = _linear(own, "second", hidden).view(-1, layers, 2, width)
            with transformer.changed(prefixes.permute(1, 2, 0, 3), own[OFFSETS]):
                return plain({}, items) @ own[FEATURES].T

        on_support = descent.support_loss(call)

        def loss(own: Weights, support: Tensor, target: Tensor, teacher: Tensor) -> Tensor:
            told = (_projected(own, own[CLASSES]) / TEMPERATURE).log_softmax(-1)
            return on_support(own, support, target) - self.pull * (teacher * told).sum(-1).mean()

        start, target = self._classes(transformer, tasks), tasks.target
        own = self._adapters(start, layers, net.backbone.dim, tasks.seeds)

        def inputs() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
            center = start.new_zeros(len(tasks), 1, PROJECTED)
            for _ in range(self.steps):
                teacher = ((_projected(own, start) - center) / TEACHER_TEMPERATURE).softmax(-1)
                yield tasks.support, target, teacher
                center = MOMENTUM * center + (1 - MOMENTUM) * teacher.mean(1, keepdim=True)

        others = [each for name, each in own.items() if name != FEATURES]
        groups = [{"params": [own[FEATURES]], "lr": self.rate}, {"params": others, "lr": self.rate / 2}]
        descent.descend(net, loss, own, torch.optim.AdamW(groups, eps=EPSILON), inputs())
        return descent.prototype_scores(net, call, own, tasks)

    @staticmethod
    def _classes(transformer: PrefixedTransformer, tasks: DecodedTasks) -> Tensor:
        """The mean patch of each class, [B, way, width]."""
        target = tasks.target
        return target.mT @ transformer.patch_embeddings(tasks.support) / target.sum(1).clamp(min=1)[..., None]

    @staticmethod
    def _adapters(classes: Tensor, layers: int, features: int, seeds: Tensor) -> Weights:
        """What each task tunes; layers are drawn by its seed as PyTorch draws those of a linear one."""
        tasks, _, width = classes.shape

        def drawn(number: int, outputs: int, inputs: int) -> Tensor:
            counters = (
                torch.full_like(seeds, number)[:, None, None],
                torch.arange(outputs, device=seeds.device)[:, None],
                torch.arange(inputs, device=seeds.device),
            )
            random = task_draws.uniform(task_draws.bits(seeds[:, None, None], *counters))
            return (2 * random - 1).to(classes.dtype)

        shapes = {"first": (width // 2, width), "second": (layers * 2 * width, width // 2)}
        shapes["projection"] = (PROJECTED, width)
        own = {CLASSES: classes.clone(), OFFSETS: classes.new_zeros(tasks, layers, 2, width)}
        for number, (name, (outputs, inputs)) in enumerate(shapes.items()):
            both = drawn(number, outputs, inputs + 1) / math.sqrt(inputs)
            own[f"{name}.weight"], own[f"{name}.bias"] = both[..., :-1].contiguous(), both[..., -1:].mT.contiguous()
        identity = torch.eye(features, device=classes.device, dtype=classes.dtype)
        own[FEATURES] = identity.expand(tasks, -1, -1).clone()
        return own


def _linear(own: Weights, name: str, rows: Tensor) -> Tensor:
    """A linear layer on rows [..., number, inputs], of one task or of many."""
    return rows @ own[f"{name}.weight"].mT + own[f"{name}.bias"]


def _projected(own: Weights, classes: Tensor) -> Tensor:
    return _linear(own, "projection", functional.normalize(classes, dim=-1))
