"""Fine-tuning of the backbone on a task, with class means or a new head, inductive and transductive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional

from shotproof.core.options import option
from shotproof.functional import task_draws
from shotproof.functional.feature_rows import almost_unit
from shotproof.learners.adaptation import descent
from shotproof.learners.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.learners.adaptation.descent import changed
from shotproof.learners.heads.inductive.gradient_descent import SHUFFLES, drawn_weights
from shotproof.models.inner_loop import Weights, over_tasks
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

WEIGHT, BIAS = "new.weight", "new.bias"
DIRECTION, LENGTH = "new.direction", "new.length"


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


@dataclass(frozen=True)
class LpFt(Adaptation):
    """Score: the logits of the cosine head of `baseline++`, trained on frozen features, then with the backbone.

    The first stage is that head's: SGD with momentum on directions and lengths from a random start. The second is
    plain gradient descent on the head and all weights but those of batch norm, which keeps its running statistics. To
    the cross-entropy both add `firth` times the mean of -log p over classes.
    """

    about = "a cosine head on frozen features, then fine-tuning of everything from it, with Firth bias"
    paper = (
        "Kumar et al., Fine-Tuning can Distort Pretrained Features, 2022; Ghaffari et al., Firth Bias Reduction, 2022"
    )
    example = "lp-ft(epochs=50, firth=0)"

    epochs: int = option(300, "passes over the support of the second stage", least=0)
    rate: float = option(1e-3, "learning rate of the second stage", above=0)
    firth: float = option(1e-3, "weight of the pull to uniform in the second stage", least=0)
    head_epochs: int = option(300, "passes over the support of the first stage", least=0)
    head_rate: float = option(0.01, "learning rate of the first stage", above=0)
    head_firth: float = option(1.0, "weight of the pull to uniform in the first stage", least=0)
    batch: int = option(4, "support items in a step", least=1)
    scale: float = option(2.0, "factor of the cosines", above=0)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """The two stages."""
        vectors, target = net(tasks.support), tasks.target
        direction = drawn_weights(tasks.seeds, tasks.way, vectors.shape[2], "uniform").to(vectors.dtype)
        head = {DIRECTION: direction, LENGTH: torch.linalg.vector_norm(direction, dim=2)}
        probe = torch.optim.SGD([*head.values()], self.head_rate, momentum=0.9, dampening=0.9, weight_decay=1e-3)
        batches = self._batches(tasks.seeds, range(self.head_epochs), vectors, target)
        descent.descend(net, self._loss(self._logits, self.head_firth), head, probe, batches)
        if not self.epochs:
            scores: Tensor = vmap(self._logits)(head, net(tasks.query))
            return scores
        call = descent.vectors_of(net)

        def logits(weights: Weights, items: Tensor) -> Tensor:
            body = {name: each for name, each in weights.items() if name not in head}
            return self._logits(weights, call(body, items))

        norms = batch_norm_names(net)
        body = descent.stacked(net, len(tasks), lambda name: name.startswith("backbone.") and name not in norms)
        weights = {**body, **head}
        epochs = range(self.head_epochs, self.head_epochs + self.epochs)
        batches = self._batches(tasks.seeds, epochs, tasks.support, target)
        descent.descend(
            net, self._loss(logits, self.firth), weights, torch.optim.SGD([*weights.values()], self.rate), batches
        )
        scores = over_tasks(net, logits)(weights, tasks.query)
        return scores

    def _logits(self, head: Weights, vectors: Tensor) -> Tensor:
        """Of one task: scale times length times cosine."""
        rows = almost_unit(vectors)
        factor = self.scale * head[LENGTH] / torch.linalg.vector_norm(head[DIRECTION], dim=1)
        logits: Tensor = rows @ head[DIRECTION].T * factor
        return logits

    @staticmethod
    def _loss(logits: Callable[[Weights, Tensor], Tensor], firth: float) -> descent.Loss:
        def loss(weights: Weights, rows: Tensor, target: Tensor) -> Tensor:
            told = logits(weights, rows)
            return descent.cross_entropy(told, target) - firth * told.log_softmax(1).mean()

        return loss

    def _batches(self, seeds: Tensor, epochs: range, rows: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Support rows [B, n, ...] in a new order in each epoch, some at a time."""
        each = torch.arange(len(seeds), device=seeds.device)[:, None]
        for epoch in epochs:
            order = task_draws.permutation(seeds, SHUFFLES, epoch, size=rows.shape[1])
            for some in torch.split(order, self.batch, 1):
                yield rows[each, some], target[each, some]


def batch_norm_names(net: nn.Module) -> set[str]:
    """The names of batch norm's parameters."""
    norms = [name for name, one in net.named_modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    return {f"{norm}.{name}" for norm in norms for name in ("weight", "bias")}


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
