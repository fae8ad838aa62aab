"""Fine-tuning of backbone and a new head, each at its own learning rate, as in Oops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from shotproof.core.options import option
from shotproof.methods.adaptation import descent
from shotproof.methods.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.methods.shared import task_draws
from shotproof.models.inner_loop import Weights, over_tasks
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

WEIGHT, BIAS = "new.weight", "new.bias"


@dataclass(frozen=True)
class FinetuneHead(Adaptation):
    """Score: the logits of a head on features of length 1, after epochs of SGD on it and on the backbone.

    The `linear` head begins with all weights 1 and no bias, so that all classes are alike; the `cosine` head, 10 times
    cosines, with the class means. Learning rates fall to zero by a cosine; batch norm keeps its running statistics.
    """

    about = "backbone and a linear or cosine head tuned by SGD, as in Oops and A Closer Look Again"
    paper = "Luo et al., A Closer Look at Few-shot Classification Again, 2023"
    example = "finetune-head(rate=0.01, head_rate=0.5, epochs=20)"
    rates = (0.01, 0.05, 0.25)

    epochs: int = option(10, "passes over the support", least=0)
    batch: int = option(100, "support items in a step", least=1)
    rate: float = option(0.02, "learning rate of the backbone; 0: it stays as it is", least=0)
    head_rate: float = option(0.1, "learning rate of the head", above=0)
    head: Literal["linear", "cosine"] = option("linear", "a linear classifier, or cosines with learned directions")
    momentum: float = option(0.9, "momentum of SGD", least=0, most=1)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Both are tuned together."""
        call = descent.vectors_of(net)

        def logits(weights: Weights, items: Tensor) -> Tensor:
            body = {name: each for name, each in weights.items() if name not in (WEIGHT, BIAS)}
            return self._logits(weights, call(body, items))

        def loss(weights: Weights, items: Tensor, target: Tensor) -> Tensor:
            return descent.cross_entropy(logits(weights, items), target)

        head = self._start(net(tasks.support), tasks.target)
        body = descent.stacked(net, len(tasks), lambda name: self.rate > 0 and name.startswith("backbone."))
        groups = [{"params": [*head.values()], "lr": self.head_rate}]
        groups += [{"params": [*body.values()], "lr": self.rate}] if body else []
        weights = {**body, **head}
        optimizer = torch.optim.SGD(groups, self.head_rate, momentum=self.momentum)
        inputs = [*self._batches(tasks)]
        descent.descend(net, loss, weights, optimizer, inputs, decayed_over=len(inputs))
        scores: Tensor = over_tasks(net, logits)(weights, tasks.query)
        return scores

    def _start(self, support: Tensor, target: Tensor) -> Weights:
        """The head of each task: weights [B, way, d], biases [B, way]."""
        tasks, _, way = target.shape
        if self.head == "linear":
            return {WEIGHT: support.new_ones(tasks, way, support.shape[2]), BIAS: support.new_zeros(tasks, way)}
        return {WEIGHT: target.mT @ functional.normalize(support, dim=2)}

    def _logits(self, head: Weights, vectors: Tensor) -> Tensor:
        rows, weight = functional.normalize(vectors, dim=1), head[WEIGHT]
        if self.head == "linear":
            return rows @ weight.T + head[BIAS]
        return descent.SCALE * rows @ functional.normalize(weight, dim=1).T

    def _batches(self, tasks: DecodedTasks) -> Iterator[tuple[Tensor, Tensor]]:
        """The support items of each step, in a new order in each epoch where they are more than a step takes."""
        count, target = tasks.support.shape[1], tasks.target
        for epoch in range(self.epochs):
            if count <= self.batch:
                yield tasks.support, target
                continue
            order = task_draws.permutation(tasks.seeds, epoch, size=count)
            each = torch.arange(len(tasks), device=order.device)[:, None]
            for rows in torch.split(order, self.batch, 1):
                yield tasks.support[each, rows], target[each, rows]
