"""LoRA: products of two thin matrices added to the weights, tuned on the support."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.adaptation import descent
from shotproof.methods.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.methods.adaptation.random_changes import changed
from shotproof.methods.shared import task_draws
from shotproof.models.inner_loop import Weights
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

UP, DOWN = " up", " down"  # after the name of a weight: its two matrices


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
        matrices, seeds = {}, tasks.seeds[:, None, None]
        for number, (name, each) in enumerate(own.items()):
            columns = each[0].numel()
            counters = (
                torch.full_like(seeds, number),
                torch.arange(self.rank, device=seeds.device)[:, None],
                torch.arange(columns, device=seeds.device),
            )
            drawn = task_draws.normal(seeds, *counters) / math.sqrt(columns)
            matrices[name + UP] = each.new_zeros(len(tasks), len(each), self.rank)
            matrices[name + DOWN] = drawn.to(each.dtype)
        return matrices
