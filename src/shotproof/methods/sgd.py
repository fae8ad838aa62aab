"""Heads that are trained by stochastic gradient descent on the support set: mini-batches, momentum, weight decay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from shotproof.errors import InputError
from shotproof.methods import task_draws
from shotproof.methods.method import SeededMethod, require_positive

INITIAL, SHUFFLES = 0, 1  # what a task's random numbers are for


@dataclass
class SgdMethod(SeededMethod):
    """Options of the descent; the defaults are those of Chen et al., A Closer Look at Few-shot Classification, 2019.

    `batch` support rows are taken at a time, in a new random order in each epoch; None takes all of them. As in
    torch.optim.SGD, the first step's momentum is the gradient, without dampening.
    """

    epochs: int = 100
    batch: int | None = 4
    rate: float = 0.01
    momentum: float = 0.9
    dampening: float = 0.9
    weight_decay: float = 1e-3

    def __post_init__(self) -> None:
        require_positive("epochs", self.epochs, int)
        require_positive("rate", self.rate, float)
        if self.batch is not None:
            require_positive("batch", self.batch, int)
        for option in ("momentum", "dampening", "weight_decay"):
            require_share(option, getattr(self, option))

    def batches(self, seeds: Tensor, rows: int) -> Iterator[Tensor]:
        """The rows of each step's mini-batch, [B, b], for a seed a task."""
        everything = torch.arange(rows, device=seeds.device).expand(len(seeds), rows)
        for epoch in range(self.epochs):
            if self.batch is None or self.batch >= rows:
                yield everything
            else:
                yield from task_draws.permutation(seeds, SHUFFLES, epoch, size=rows).split(self.batch, dim=1)

    def descend(self, parameters: Sequence[Tensor], buffers: list[Tensor], gradients: Sequence[Tensor]) -> None:
        """One step, in place; `buffers`, empty before the first step, hold the momentum."""
        changes = [g.add(p, alpha=self.weight_decay) for p, g in zip(parameters, gradients, strict=True)]
        if not buffers or self.momentum == 0:
            buffers[:] = changes
        else:
            for buffer, change in zip(buffers, changes, strict=True):
                buffer.mul_(self.momentum).add_(change, alpha=1 - self.dampening)
        for parameter, buffer in zip(parameters, buffers, strict=True):
            parameter.sub_(buffer, alpha=self.rate)


def of_rows(values: Tensor, rows: Tensor) -> Tensor:
    """The columns `rows` [B, b] of values [B, k, n]: [B, k, b]."""
    return values.gather(-1, rows.unsqueeze(1).expand(-1, values.shape[1], -1))


def residual(logits: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """The gradient of the mini-batch's mean cross-entropy in its logits [B, way, b]; labels [B, n]."""
    target = labels.gather(1, rows).unsqueeze(1) == torch.arange(logits.shape[1], device=logits.device).unsqueeze(-1)
    return (logits.softmax(1) - target.double()) / rows.shape[1]


def drawn_weights(seeds: Tensor, way: int, d: int, init: str) -> Tensor:
    """A random start [B, way, d]: `uniform` within 1 / sqrt(d) of 0, as torch's linear layer, or `normal` / 100."""
    counters = (torch.arange(way, device=seeds.device).unsqueeze(-1), torch.arange(d, device=seeds.device))
    own, purpose = seeds[:, None, None], torch.full_like(seeds, INITIAL)[:, None, None]
    if init == "normal":
        return task_draws.normal(own, purpose, *counters) / 100
    return (2 * task_draws.uniform(task_draws.bits(own, purpose, *counters)) - 1) / d**0.5


def require_share(option: str, value: Any) -> None:
    """Refuse an option's value that is not a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{option}: expected a number from 0 to 1, found {value!r}")
