"""LoRA and TSA: adapters beside frozen weights, tuned on the support set."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.errors import Mismatch
from shotproof.core.options import option
from shotproof.functional import task_draws
from shotproof.learners.adaptation import descent
from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.learners.adaptation.descent import augment_support
from shotproof.models.inner_loop import Weights
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

UP, DOWN = " up", " down"  # suffixes that name the two matrices of a weight
FEATURES = "new.features"
START = 1e-4  # initial diagonal of each adapter


@dataclass(frozen=True)
class Lora(Adaptation):
    """Score: cosines with class means after steps of Adam on low-rank updates of the weights alone.

    scale / rank U D is added to each matrix of the backbone, and to each convolution as a matrix of out x (in x height
    x width); U [out, rank] starts at zero and D at random. Each step classifies the augmented support items by the
    class means of the support; logits are cosines times 10. Batch norm keeps its running statistics.
    """

    about = "low-rank updates of all matrices and convolutions, tuned on the augmented support set"
    paper = "Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2022"
    example = "lora(rank=8)"

    steps: int = option(50, "steps of Adam", least=0)
    rate: float = option(1e-3, "learning rate of Adam", above=0)
    rank: int = option(4, "rank of the update of each matrix", least=1)
    scale: float = option(4.0, "factor of the updates, before they are divided by the rank", above=0)
    augment: float = option(0.9, "probability that a step augments the support items", least=0, most=1)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Tune the low-rank matrices only; the network's own weights stay as they are."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        embed = descent.embedding_function(net)
        base_weights = {
            name: weight.detach()
            for name, weight in net.named_parameters()
            if name.startswith("backbone.") and weight.ndim in (2, 4)
        }

        def adapted_embed(matrices: Weights, items: Tensor) -> Tensor:
            weights = {
                name: weight + self.scale / self.rank * (matrices[name + UP] @ matrices[name + DOWN]).view(weight.shape)
                for name, weight in base_weights.items()
            }
            return embed(weights, items)

        matrices = self._initial_matrices(base_weights, tasks)
        optimizer = torch.optim.Adam([*matrices.values()], self.rate)
        inputs = (
            (tasks.support, tasks.target, augment_support(tasks.support, tasks.seeds, step, self.augment))
            for step in range(self.steps)
        )
        descent.descend(net, descent.prototype_loss(adapted_embed), matrices, optimizer, inputs)
        return descent.prototype_scores(net, adapted_embed, matrices, tasks)

    def _initial_matrices(self, base_weights: Weights, tasks: DecodedTasks) -> Weights:
        """Return the initial matrices of each task: U zero, D drawn by the task's seed with variance 1 / columns."""
        matrices = {}
        for number, (name, weight) in enumerate(base_weights.items()):
            columns = weight[0].numel()
            noise = task_draws.normal(*task_draws.entries(tasks.seeds, number, self.rank, columns))
            matrices[name + UP] = weight.new_zeros(len(tasks), len(weight), self.rank)
            matrices[name + DOWN] = (noise / math.sqrt(columns)).to(weight.dtype)
        return matrices


@dataclass(frozen=True)
class Tsa(Adaptation):
    """Score: cosines with class means after steps of Adadelta on adapters alone.

    Each 3 x 3 convolution gets a parallel 1 x 1 convolution, initially 1e-4 times the identity, whose output is added;
    features pass through a linear map, initially the identity. Each step classifies the support by its own class means;
    logits are cosines times 10. Batch norm keeps its running statistics.
    """

    about = "adapters parallel to the convolutions and on the features, tuned on the support set"
    paper = "Li, Liu and Bilen, Cross-domain Few-shot Learning with Task-specific Adapters, 2022"
    example = "tsa(rate=0.05)"
    rates = (0.05, 0.1, 0.5)

    steps: int = option(40, "steps of Adadelta", least=0)
    rate: float = option(0.1, "learning rate of the adapters of the convolutions", above=0)
    feature_rate: float = option(1.0, "learning rate of the linear map on the features", above=0)

    def require_model(self, model: Model) -> None:
        """Raise Mismatch if the backbone has no 3 x 3 convolutions."""
        if not _convolutions(model.network()):
            raise Mismatch(f"method '{self.spelling}': backbone '{model.backbone}' has no 3 x 3 convolutions")

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Tune the adapters, each added to the center of its 3 x 3 kernel: that equals a parallel 1 x 1 convolution."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        base_weights, embed = _convolutions(net), descent.embedding_function(net)

        def adapted_embed(adapters: Weights, items: Tensor) -> Tensor:
            weights = {
                name: kernel + functional.pad(adapters[name][..., None, None], (1, 1, 1, 1))
                for name, kernel in base_weights.items()
            }
            return embed(weights, items) @ adapters[FEATURES].T

        def repeat_per_task(matrix: Tensor) -> Tensor:
            return matrix.expand(len(tasks), *matrix.shape).clone()

        device = tasks.support.device
        adapters = {
            name: repeat_per_task(START * torch.eye(*kernel.shape[:2], device=device))
            for name, kernel in base_weights.items()
        }
        features = repeat_per_task(torch.eye(net.backbone.dim, device=device))
        optimizer = torch.optim.Adadelta(
            [{"params": [*adapters.values()], "lr": self.rate}, {"params": [features], "lr": self.feature_rate}]
        )
        adapters[FEATURES] = features
        inputs = [(tasks.support, tasks.target)] * self.steps
        descent.descend(net, descent.support_loss(adapted_embed), adapters, optimizer, inputs)
        return descent.prototype_scores(net, adapted_embed, adapters, tasks)


def _convolutions(net: FewShotNetwork) -> Weights:
    """Return the weights of all padded 3 x 3 convolutions of the backbone, by name."""
    return {
        f"backbone.{name}.weight": module.weight.detach()
        for name, module in net.backbone.named_modules()
        if isinstance(module, nn.Conv2d)
        and module.kernel_size == (3, 3)
        and module.padding == (1, 1)
        and module.groups == 1
    }
