"""LP-FT: a probe on frozen features first, then fine-tuning of everything from it, with Firth's pull to uniform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import vmap

from shotproof.core.options import option
from shotproof.methods.adaptation import descent
from shotproof.methods.adaptation.adaptation import Adaptation, DecodedTasks
from shotproof.methods.heads.inductive.baseline_plus_plus import EPSILON
from shotproof.methods.shared import task_draws
from shotproof.methods.shared.sgd import SHUFFLES, drawn_weights
from shotproof.models.inner_loop import Weights, over_tasks
from shotproof.models.model import Model
from shotproof.models.network import FewShotNetwork

DIRECTION, LENGTH = "new.direction", "new.length"


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
        rows = vectors / (torch.linalg.vector_norm(vectors, dim=1, keepdim=True) + EPSILON)
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
