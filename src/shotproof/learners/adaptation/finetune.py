"""Fine-tuning of the backbone on each task, with class means or a new head, inductive and transductive."""

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
from shotproof.learners.adaptation.descent import augment_support
from shotproof.learners.heads.inductive.gradient_descent import SHUFFLES, draw_weights
from shotproof.models.inner_loop import Weights, over_tasks
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

WEIGHT, BIAS = "new.weight", "new.bias"
DIRECTION, LENGTH = "new.direction", "new.length"


@dataclass(frozen=True)
class Finetune(Adaptation):
    """Score: cosines with class means after steps of Adam on all weights of the backbone.

    Each step classifies the augmented support items by the class means of the original support; logits are cosines
    times 10. Batch norm keeps its running statistics.
    """

    about = "whole backbone fine-tuned on the augmented support set, as in P>M>F and Hard-Meta-Dataset++"
    paper = "Hu, Li, Stühmer, Kim and Hospedales, Pushing the Limits of Simple Pipelines for Few-Shot Learning, 2022"
    example = "finetune(rate=0.001, steps=100)"

    steps: int = option(50, "steps of Adam", least=0)
    rate: float = option(1e-4, "learning rate of Adam", above=0)
    augment: float = option(0.9, "probability that a step augments the support items", least=0, most=1)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Fine-tune the backbone; the head has no parameters, as it is the class means."""
        if not self.steps:
            return descent.frozen_scores(net, tasks)
        embed, target = descent.embedding_function(net), tasks.target
        weights = descent.stack_parameters(net, len(tasks), lambda name: name.startswith("backbone."))
        inputs = (
            (tasks.support, target, augment_support(tasks.support, tasks.seeds, step, self.augment))
            for step in range(self.steps)
        )
        optimizer = torch.optim.Adam([*weights.values()], self.rate)
        descent.descend(net, descent.prototype_loss(embed), weights, optimizer, inputs)
        return descent.prototype_scores(net, embed, weights, tasks)


@dataclass(frozen=True)
class FinetuneHead(Adaptation):
    """Score: the logits of a head on features of length 1, after epochs of SGD on the head and the backbone.

    The `linear` head starts with all weights 1 and no bias, so that all classes are alike; the `cosine` head, 10 times
    cosines, with the class means. Learning rates follow a cosine schedule to zero; batch norm keeps its running
    statistics.
    """

    about = "backbone and a linear or cosine head fine-tuned by SGD, as in Oops and A Closer Look Again"
    paper = "Luo et al., A Closer Look at Few-shot Classification Again, 2023"
    example = "finetune-head(rate=0.01, head_rate=0.5, epochs=20)"
    rates = (0.01, 0.05, 0.25)

    epochs: int = option(10, "passes over the support", least=0)
    batch: int = option(100, "support items per step", least=1)
    rate: float = option(0.02, "learning rate of the backbone; 0: frozen", least=0)
    head_rate: float = option(0.1, "learning rate of the head", above=0)
    head: Literal["linear", "cosine"] = option("linear", "a linear classifier, or cosines with learned directions")
    momentum: float = option(0.9, "momentum of SGD", least=0, most=1)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Tune backbone and head together."""
        embed = descent.embedding_function(net)

        def logits(weights: Weights, items: Tensor) -> Tensor:
            body = {name: weight for name, weight in weights.items() if name not in (WEIGHT, BIAS)}
            return self._logits(weights, embed(body, items))

        def loss(weights: Weights, items: Tensor, target: Tensor) -> Tensor:
            return descent.cross_entropy(logits(weights, items), target)

        head = self._initial_head(net(tasks.support), tasks.target)
        body = descent.stack_parameters(net, len(tasks), lambda name: self.rate > 0 and name.startswith("backbone."))
        groups = [{"params": [*head.values()], "lr": self.head_rate}]
        groups += [{"params": [*body.values()], "lr": self.rate}] if body else []
        weights = {**body, **head}
        optimizer = torch.optim.SGD(groups, self.head_rate, momentum=self.momentum)
        inputs = [*self._batches(tasks)]
        descent.descend(net, loss, weights, optimizer, inputs, decay_steps=len(inputs))
        scores: Tensor = over_tasks(net, logits)(weights, tasks.query)
        return scores

    def _initial_head(self, support: Tensor, target: Tensor) -> Weights:
        """Return the initial head of each task: weights [B, way, d], biases [B, way]."""
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
        """Yield the support items of each step, reshuffled in each epoch if they exceed one batch."""
        count, target = tasks.support.shape[1], tasks.target
        for epoch in range(self.epochs):
            if count <= self.batch:
                yield tasks.support, target
                continue
            order = task_draws.permutation(tasks.seeds, epoch, size=count)
            task_index = torch.arange(len(tasks), device=order.device)[:, None]
            for rows in torch.split(order, self.batch, 1):
                yield tasks.support[task_index, rows], target[task_index, rows]


@dataclass(frozen=True)
class LpFt(Adaptation):
    """Score: the logits of the cosine head of `baseline++`, trained on frozen features, then with the backbone.

    The first stage trains the head as `baseline++` does: SGD with momentum on directions and lengths from a random
    initialization. The second is plain gradient descent on the head and all weights except those of batch norm, which
    keeps its running statistics. Both add `firth` times the mean of -log p over classes to the cross-entropy.
    """

    about = "cosine head trained on frozen features, then fine-tuned with the backbone, with Firth bias reduction"
    paper = (
        "Kumar et al., Fine-Tuning can Distort Pretrained Features, 2022; Ghaffari et al., Firth Bias Reduction, 2022"
    )
    example = "lp-ft(epochs=50, firth=0)"

    epochs: int = option(300, "passes over the support of the second stage", least=0)
    rate: float = option(1e-3, "learning rate of the second stage", above=0)
    firth: float = option(1e-3, "weight of the Firth penalty in the second stage", least=0)
    head_epochs: int = option(300, "passes over the support of the first stage", least=0)
    head_rate: float = option(0.01, "learning rate of the first stage", above=0)
    head_firth: float = option(1.0, "weight of the Firth penalty in the first stage", least=0)
    batch: int = option(4, "support items per step", least=1)
    scale: float = option(2.0, "factor of the cosines", above=0)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Train the head, then fine-tune it together with the backbone."""
        vectors, target = net(tasks.support), tasks.target
        direction = draw_weights(tasks.seeds, tasks.way, vectors.shape[2], "uniform").to(vectors.dtype)
        head = {DIRECTION: direction, LENGTH: torch.linalg.vector_norm(direction, dim=2)}
        optimizer = torch.optim.SGD([*head.values()], self.head_rate, momentum=0.9, dampening=0.9, weight_decay=1e-3)
        batches = self._batches(tasks.seeds, range(self.head_epochs), vectors, target)
        descent.descend(net, self._loss(self._logits, self.head_firth), head, optimizer, batches)
        if not self.epochs:
            scores: Tensor = vmap(self._logits)(head, net(tasks.query))
            return scores
        embed = descent.embedding_function(net)

        def logits(weights: Weights, items: Tensor) -> Tensor:
            body = {name: weight for name, weight in weights.items() if name not in head}
            return self._logits(weights, embed(body, items))

        norms = batch_norm_names(net)
        body = descent.stack_parameters(
            net, len(tasks), lambda name: name.startswith("backbone.") and name not in norms
        )
        weights = {**body, **head}
        epochs = range(self.head_epochs, self.head_epochs + self.epochs)
        batches = self._batches(tasks.seeds, epochs, tasks.support, target)
        descent.descend(
            net, self._loss(logits, self.firth), weights, torch.optim.SGD([*weights.values()], self.rate), batches
        )
        scores = over_tasks(net, logits)(weights, tasks.query)
        return scores

    def _logits(self, head: Weights, vectors: Tensor) -> Tensor:
        """Compute the logits of one task: scale times length times cosine."""
        rows = almost_unit(vectors)
        factor = self.scale * head[LENGTH] / torch.linalg.vector_norm(head[DIRECTION], dim=1)
        logits: Tensor = rows @ head[DIRECTION].T * factor
        return logits

    @staticmethod
    def _loss(logits: Callable[[Weights, Tensor], Tensor], firth: float) -> descent.Loss:
        def loss(weights: Weights, rows: Tensor, target: Tensor) -> Tensor:
            class_logits = logits(weights, rows)
            return descent.cross_entropy(class_logits, target) - firth * class_logits.log_softmax(1).mean()

        return loss

    def _batches(self, seeds: Tensor, epochs: range, rows: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield mini-batches of the support rows [B, n, ...], reshuffled in each epoch."""
        task_index = torch.arange(len(seeds), device=seeds.device)[:, None]
        for epoch in epochs:
            order = task_draws.permutation(seeds, SHUFFLES, epoch, size=rows.shape[1])
            for batch in torch.split(order, self.batch, 1):
                yield rows[task_index, batch], target[task_index, batch]


def batch_norm_names(net: nn.Module) -> set[str]:
    """Return the names of the parameters of all batch norm layers."""
    norms = [name for name, module in net.named_modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    return {f"{norm}.{name}" for norm in norms for name in ("weight", "bias")}


@dataclass(frozen=True)
class TransductiveFinetuneNetwork(Adaptation):
    """Score: the logits w z + b, z = relu(logits of the training classes), scaled to length 1.

    w starts as the class means of z over the support, scaled to length 1, and b as 0. Each epoch takes two steps of
    Adam on all weights: on the cross-entropy of the support, then on the mean entropy of the queries. If the model has
    no classifier of its training classes, z = relu(features). Batch norm keeps its running statistics.
    """

    about = "whole network and a head fine-tuned on the support set and on the entropy of the queries"
    paper = "Dhillon, Chaudhari, Ravichandran, Soatto, A Baseline for Few-Shot Image Classification, ICLR 2020"
    example = "transductive-finetune-network(epochs=50)"
    family = "transductive"
    rates = (1e-5, 5e-5, 2e-4)

    epochs: int = option(25, "pairs of steps: on the support, then on the queries", least=0)
    rate: float = option(5e-5, "learning rate of Adam", above=0)

    def adapted_scores(self, model: Model, net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
        """Alternate the two steps, with one optimizer for both."""
        has_classifier = model.objective.trains_on == "classes" and isinstance(net.head, nn.Linear)
        view, target = descent.adapting_view(net, logits=has_classifier), tasks.target

        def directions(outputs: Tensor) -> Tensor:
            return functional.normalize(outputs.relu(), dim=-1)

        def logits(weights: Weights, items: Tensor) -> Tensor:
            network = {name: parameter for name, parameter in weights.items() if name not in (WEIGHT, BIAS)}
            return directions(view.call(network, items)) @ weights[WEIGHT].T + weights[BIAS]

        def support_loss(weights: Weights, items: Tensor, target: Tensor) -> Tensor:
            return descent.cross_entropy(logits(weights, items), target)

        def entropy(weights: Weights, items: Tensor) -> Tensor:
            log_probabilities = logits(weights, items).log_softmax(1)
            return -(log_probabilities.exp() * log_probabilities).sum(1).mean()

        def network_outputs(items: Tensor) -> Tensor:
            outputs: Tensor = net.head(net(items)) if has_classifier else net(items)
            return outputs

        start = functional.normalize(target.mT @ network_outputs(tasks.support).relu(), dim=2)
        head = {WEIGHT: start, BIAS: start.new_zeros(start.shape[:2])}
        if not self.epochs:
            return directions(network_outputs(tasks.query)) @ start.mT
        tuned = ("backbone.", "head.") if has_classifier else ("backbone.",)
        weights = {**descent.stack_parameters(net, len(tasks), lambda name: name.startswith(tuned)), **head}
        optimizer = torch.optim.Adam([*weights.values()], self.rate)
        for _ in range(self.epochs):
            descent.descend(net, support_loss, weights, optimizer, [(tasks.support, target)])
            descent.descend(net, entropy, weights, optimizer, [(tasks.query,)])
        scores: Tensor = over_tasks(net, logits)(weights, tasks.query)
        return scores
