"""Transductive fine-tuning of the whole network: sure of the support, then sure of the queries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shotproof.core.options import option
from shotproof.methods.adaptation import descent
from shotproof.methods.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.models.inner_loop import Weights, over_tasks
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

WEIGHT, BIAS = "new.weight", "new.bias"


@dataclass(frozen=True)
class TransductiveFinetuneNetwork(Adaptation):
    """Score: the logits w z + b, z = relu(logits of the training classes), scaled to length 1.

    w starts as the class means of z over the support, scaled to length 1, and b as 0. Each of `epochs` makes two steps
    of Adam on everything: on the cross-entropy of the support, then on the mean entropy of the queries. Of a model
    without a classifier of its training classes, z = relu(features). Batch norm keeps its running statistics.
    """

    about = "all of the network and a head tuned on the support and on the entropy of the queries"
    paper = "Dhillon, Chaudhari, Ravichandran, Soatto, A Baseline for Few-Shot Image Classification, ICLR 2020"
    example = "transductive-finetune-network(epochs=50)"
    family = "transductive"
    rates = (1e-5, 5e-5, 2e-4)

    epochs: int = option(25, "pairs of steps: on the support, then on the queries", least=0)
    rate: float = option(5e-5, "learning rate of Adam", above=0)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Both steps share one optimizer."""
        classifies = model.objective.trains_on == "classes" and isinstance(net.head, nn.Linear)
        viewed, target = descent.adapting_view(net, logits=classifies), tasks.target

        def directions(seen: Tensor) -> Tensor:
            return functional.normalize(seen.relu(), dim=-1)

        def logits(weights: Weights, items: Tensor) -> Tensor:
            network = {name: each for name, each in weights.items() if name not in (WEIGHT, BIAS)}
            return directions(viewed.call(network, items)) @ weights[WEIGHT].T + weights[BIAS]

        def surprise(weights: Weights, items: Tensor, target: Tensor) -> Tensor:
            return descent.cross_entropy(logits(weights, items), target)

        def entropy(weights: Weights, items: Tensor) -> Tensor:
            told = logits(weights, items).log_softmax(1)
            return -(told.exp() * told).sum(1).mean()

        def seen(items: Tensor) -> Tensor:
            given: Tensor = net.head(net(items)) if classifies else net(items)
            return given

        start = functional.normalize(target.mT @ seen(tasks.support).relu(), dim=2)
        head = {WEIGHT: start, BIAS: start.new_zeros(start.shape[:2])}
        if not self.epochs:
            return directions(seen(tasks.query)) @ start.mT
        tuned = ("backbone.", "head.") if classifies else ("backbone.",)
        weights = {**descent.stacked(net, len(tasks), lambda name: name.startswith(tuned)), **head}
        optimizer = torch.optim.Adam([*weights.values()], self.rate)
        for _ in range(self.epochs):
            descent.descend(net, surprise, weights, optimizer, [(tasks.support, target)])
            descent.descend(net, entropy, weights, optimizer, [(tasks.query,)])
        scores: Tensor = over_tasks(net, logits)(weights, tasks.query)
        return scores
