"""LoRA and TSA: small matrices beside the weights, tuned on the support."""

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
from shotproof.learners.adaptation.descent import changed
from shotproof.models.inner_loop import Weights
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

UP, DOWN = " up", " down"  # after the name of a weight: its two matrices
FEATURES = "new.features"
START = 1e-4  # of the diagonal of each adapter


@dataclass(frozen=True)
class Lora(Adaptation):
    """Score: cosines with class means after steps of Adam on low-rank changes of the weights alone.

    Each matrix of the backbone, and each convolution as one of out x (in x height x width), gets the sum scale / rank
    U D, where U [out, rank] starts at zero and D is drawn. Each step classifies randomly changed support items by the
    class means of the support; logits are cosines times 10. Batch norm keeps its running statistics.
    """

    about = "low-rank changes of all matrices and convolutions, tuned on the changed support"
    paper = "Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2022"
    example = "lora(rank=8)"

    steps: int = option(50, "steps of Adam", least=0)
    rate: float = option(1e-3, "learning rate of Adam", above=0)
    rank: int = option(4, "of the change of each matrix", least=1)
    scale: float = option(4.0, "factor of the changes, before they are divided by the rank", above=0)
    augment: float = option(0.9, "how often a step changes the support at random", least=0, most=1)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """The network's own weights stay."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        plain = descent.vectors_of(net)
        own = {
            name: each.detach()
            for name, each in net.named_parameters()
            if name.startswith("backbone.") and each.ndim in (2, 4)
        }

        def call(matrices: Weights, items: Tensor) -> Tensor:
            weights = {
                name: each + self.scale / self.rank * (matrices[name + UP] @ matrices[name + DOWN]).view(each.shape)
                for name, each in own.items()
            }
            return plain(weights, items)

        matrices = self._start(own, tasks)
        optimizer = torch.optim.Adam([*matrices.values()], self.rate)
        inputs = (
            (tasks.support, tasks.target, changed(tasks.support, tasks.seeds, step, self.augment))
            for step in range(self.steps)
        )
        descent.descend(net, descent.prototype_loss(call), matrices, optimizer, inputs)
        return descent.prototype_scores(net, call, matrices, tasks)

    def _start(self, own: Weights, tasks: DecodedTasks) -> Weights:
        """Each task's matrices: zero, and drawn by its seed with variance 1 / columns."""
        matrices = {}
        for number, (name, each) in enumerate(own.items()):
            columns = each[0].numel()
            drawn = task_draws.normal(*task_draws.entries(tasks.seeds, number, self.rank, columns))
            matrices[name + UP] = each.new_zeros(len(tasks), len(each), self.rank)
            matrices[name + DOWN] = (drawn / math.sqrt(columns)).to(each.dtype)
        return matrices


@dataclass(frozen=True)
class Tsa(Adaptation):
    """Score: cosines with class means after steps of Adadelta on adapters alone.

    Beside each 3 x 3 convolution lies a 1 x 1 convolution, first 1e-4 of the identity, whose output is added; features
    go through a linear map, first the identity. The support is classified by its own class means, logits are cosines
    times 10. Batch norm keeps its running statistics.
    """

    about = "adapters beside the convolutions and on the features, tuned on the support"
    paper = "Li, Liu and Bilen, Cross-domain Few-shot Learning with Task-specific Adapters, 2022"
    example = "tsa(rate=0.05)"
    rates = (0.05, 0.1, 0.5)

    steps: int = option(40, "steps of Adadelta", least=0)
    rate: float = option(0.1, "learning rate of the adapters beside convolutions", above=0)
    feature_rate: float = option(1.0, "learning rate of the map of features", above=0)

    def require_model(self, model: Model) -> None:
        """Refuse networks without such convolutions."""
        if not _convolutions(model.network()):
            raise Mismatch(f"method '{self.spelling}': backbone '{model.backbone}' has no 3 x 3 convolutions")

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """A 1 x 1 convolution of the same stride is the middle of a 3 x 3 one: adapters are added to its weights."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        own, plain = _convolutions(net), descent.vectors_of(net)

        def call(adapters: Weights, items: Tensor) -> Tensor:
            weights = {
                name: each + functional.pad(adapters[name][..., None, None], (1, 1, 1, 1)) for name, each in own.items()
            }
            return plain(weights, items) @ adapters[FEATURES].T

        def repeated(matrix: Tensor) -> Tensor:
            return matrix.expand(len(tasks), *matrix.shape).clone()

        device = tasks.support.device
        adapters = {name: repeated(START * torch.eye(*each.shape[:2], device=device)) for name, each in own.items()}
        features = repeated(torch.eye(net.backbone.dim, device=device))
        optimizer = torch.optim.Adadelta(
            [{"params": [*adapters.values()], "lr": self.rate}, {"params": [features], "lr": self.feature_rate}]
        )
        adapters[FEATURES] = features
        inputs = [(tasks.support, tasks.target)] * self.steps
        descent.descend(net, descent.support_loss(call), adapters, optimizer, inputs)
        return descent.prototype_scores(net, call, adapters, tasks)


def _convolutions(net: FewShotNetwork) -> Weights:
    """The weights of all padded 3 x 3 convolutions of the backbone, by name."""
    return {
        f"backbone.{name}.weight": one.weight.detach()
        for name, one in net.backbone.named_modules()
        if isinstance(one, nn.Conv2d) and one.kernel_size == (3, 3) and one.padding == (1, 1) and one.groups == 1
    }
