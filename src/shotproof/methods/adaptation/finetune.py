"""Fine-tuning of the whole backbone on a task's changed support, as P>M>F does it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.adaptation import descent
from shotproof.methods.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.methods.adaptation.random_changes import changed
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork


@dataclass(frozen=True)
class Finetune(Adaptation):
    """Score: cosines with class means after steps of Adam on all weights of the backbone.

    Each step classifies randomly changed support items by the class means of the support as it is; logits are cosines
    times 10. Batch norm keeps its running statistics.
    """

    about = "all of the backbone tuned on the changed support, as P>M>F and Hard-Meta-Dataset++ do"
    paper = "Hu, Li, Stühmer, Kim and Hospedales, Pushing the Limits of Simple Pipelines for Few-Shot Learning, 2022"
    example = "finetune(rate=0.001, steps=100)"

    steps: int = option(50, "steps of Adam", least=0)
    rate: float = option(1e-4, "learning rate of Adam", above=0)
    augment: float = option(0.9, "how often a step changes the support at random", least=0, most=1)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """The head is not tuned: it is the class means."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        call, target = descent.vectors_of(net), tasks.target
        weights = descent.stacked(net, len(tasks), lambda name: name.startswith("backbone."))
        inputs = (
            (tasks.support, target, changed(tasks.support, tasks.seeds, step, self.augment))
            for step in range(self.steps)
        )
        optimizer = torch.optim.Adam([*weights.values()], self.rate)
        descent.descend(net, descent.prototype_loss(call), weights, optimizer, inputs)
        return descent.prototype_scores(net, call, weights, tasks)
