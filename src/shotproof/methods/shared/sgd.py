"""Heads that are trained by stochastic gradient descent on the support set: mini-batches, momentum, weight decay."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from shotproof.core.options import option
from shotproof.methods.method import SeededMethod
from shotproof.methods.shared import task_draws
from shotproof.methods.shared.gram import one_hot

INITIAL, SHUFFLES = 0, 1  # what a task's random numbers are for


@dataclass(frozen=True)
class SgdMethod(SeededMethod):
    """Options of the descent; the defaults are those of Chen et al., A Closer Look at Few-shot Classification, 2019.

    `batch` support rows are taken at a time, in a new random order in each epoch. As in torch.optim.SGD, the first
    step's momentum is the gradient, without dampening.
    """

    epochs: int = option(100, "passes over the support", least=1)
    batch: int | None = option(4, "support rows in a mini-batch; None: all of them", least=1)
    rate: float = option(0.01, "learning rate of SGD", above=0)
    momentum: float = option(0.9, "momentum of SGD", least=0, most=1)
    dampening: float = option(0.9, "dampening of SGD's momentum", least=0, most=1)
    weight_decay: float = option(1e-3, "weight decay of SGD", least=0, most=1)

    @abstractmethod
    def gradients(self, parameters: Sequence[Tensor], known: Known, rows: slice) -> list[Tensor]:
        """Those of the mini-batch's mean cross-entropy, without the weight decay."""

    def train(self, parameters: Sequence[Tensor], known: Known, seeds: Tensor) -> None:
        """Descend in place; parameters[0] is [B, way, n], one weight per support row, the others know no rows."""
        count = known.kernel.shape[-1]
        size = min(self.batch or count, count)
        buffers: list[Tensor] = []
        for epoch in range(self.epochs):
            if size == count:
                self._step(parameters, buffers, self.gradients(parameters, known, slice(None)))
                continue
            # Everything in the epoch's order, so that a mini-batch is a slice.
            order = self.order(seeds, epoch, count)
            weights = of_rows(parameters[0], order)
            if buffers:
                buffers[0] = of_rows(buffers[0], order)
            shuffled = known.in_order(order)
            for start in range(0, count, size):
                rows = slice(start, min(start + size, count))
                moved = [weights, *parameters[1:]]
                self._step(moved, buffers, self.gradients(moved, shuffled, rows))
            index = order.unsqueeze(1).expand_as(weights)
            parameters[0].scatter_(-1, index, weights)
            buffers[0] = torch.empty_like(weights).scatter_(-1, index, buffers[0])

    def order(self, seeds: Tensor, epoch: int, rows: int) -> Tensor:
        """The order of the support rows in an epoch, [B, rows]."""
        return task_draws.permutation(seeds, SHUFFLES, epoch, size=rows)

    def _step(self, parameters: Sequence[Tensor], buffers: list[Tensor], gradients: Sequence[Tensor]) -> None:
        """`buffers`, empty before the first step, hold the momentum."""
        changes = [g.add_(p, alpha=self.weight_decay) for p, g in zip(parameters, gradients, strict=True)]
        if not buffers or self.momentum == 0:
            buffers[:] = changes
        else:
            for buffer, change in zip(buffers, changes, strict=True):
                buffer.mul_(self.momentum).add_(change, alpha=1 - self.dampening)
        for parameter, buffer in zip(parameters, buffers, strict=True):
            parameter.sub_(buffer, alpha=self.rate)


@dataclass(frozen=True)
class Known:
    """What the descent needs of the support rows: all else lies in their span.

    kernel: their inner products [B, n, n]
    at_start: their products with the weights that the descent starts from [B, way, n]
    start_norm2: the squared lengths of those weights [B, way, 1]
    target: the rows' classes, one-hot [B, way, n]
    """

    kernel: Tensor
    at_start: Tensor
    start_norm2: Tensor
    target: Tensor

    @classmethod
    def of(cls, rows: Tensor, labels: Tensor, start: Tensor) -> Known:
        """From float64 rows [B, n, d], labels [B, n] and starting weights [B, way, d]."""
        target = one_hot(labels, start.shape[1]).mT.contiguous()
        return cls(rows @ rows.mT, start @ rows.mT, start.square().sum(-1, keepdim=True), target)

    def in_order(self, order: Tensor) -> Known:
        """The same with the rows in the order [B, n]."""
        kernel = of_rows(of_rows(self.kernel, order).mT, order)
        return Known(kernel, of_rows(self.at_start, order), self.start_norm2, of_rows(self.target, order))


def of_rows(values: Tensor, rows: Tensor) -> Tensor:
    """The columns `rows` [B, b] of values [B, k, n]: [B, k, b]."""
    return values.gather(-1, rows.unsqueeze(1).expand(-1, values.shape[1], -1))


def residual(logits: Tensor, target: Tensor) -> Tensor:
    """The gradient of the mean cross-entropy in the logits [B, way, b]."""
    gradient: Tensor = (logits.softmax(1) - target) / logits.shape[-1]
    return gradient


def drawn_weights(seeds: Tensor, way: int, d: int, init: str) -> Tensor:
    """A random start [B, way, d]: `uniform` within 1 / sqrt(d) of 0, as torch's linear layer, or `normal` / 100."""
    counters = (torch.arange(way, device=seeds.device).unsqueeze(-1), torch.arange(d, device=seeds.device))
    own, purpose = seeds[:, None, None], torch.full_like(seeds, INITIAL)[:, None, None]
    if init == "normal":
        return task_draws.normal(own, purpose, *counters) / 100
    drawn = task_draws.uniform(task_draws.bits(own, purpose, *counters))
    return (2 * drawn - 1) / math.sqrt(d)
