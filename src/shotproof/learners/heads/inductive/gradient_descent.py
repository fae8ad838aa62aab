"""Heads that gradient descent trains on the support set, and its optimizers, batched over tasks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shotproof.core.lazy import torch
from shotproof.core.options import option
from shotproof.functional import task_draws
from shotproof.functional.feature_rows import almost_unit, one_hot
from shotproof.learners.method import SeededMethod

if TYPE_CHECKING:
    from torch import Tensor

FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults
INITIAL, SHUFFLES = 0, 1  # what a task's random numbers are for


class Adam:
    """Adam (Kingma and Ba 2015) for one tensor, without autograd; with a decay of the weights, AdamW."""

    def __init__(self, parameter: Tensor, rate: float, *, decay: float = 0.0, epsilon: float = EPSILON) -> None:
        self._parameter, self._rate, self._steps = parameter, rate, 0
        self._decay, self._epsilon = decay, epsilon
        self._mean, self._square = torch.zeros_like(parameter), torch.zeros_like(parameter)

    def step(self, gradient: Tensor, rate: float | None = None) -> None:
        """Move the parameter against its gradient, at another rate where one is given."""
        rate = self._rate if rate is None else rate
        self._steps += 1
        if self._decay:
            self._parameter.mul_(1 - rate * self._decay)
        root = math.sqrt(1 - SECOND**self._steps)
        self._mean.lerp_(gradient, 1 - FIRST)
        self._square.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        size = rate * root / (1 - FIRST**self._steps)
        self._parameter.addcdiv_(self._mean, self._square.sqrt().add_(self._epsilon * root), value=-size)


def cosine_rate(rate: float, step: int, steps: int) -> float:
    """The rate of a step that falls along a cosine from `rate` to 0."""
    return rate * (1 + math.cos(math.pi * step / steps)) / 2


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
    entries = task_draws.entries(seeds, INITIAL, way, d)
    if init == "normal":
        return task_draws.normal(*entries) / 100
    return (2 * task_draws.uniform(task_draws.bits(*entries)) - 1) / math.sqrt(d)


@dataclass(frozen=True)
class LinearHead(SgdMethod):
    """Score: W x + b after 100 epochs of SGD on the cross-entropy, from a random start.

    `init='zero'` with `batch=None` draws nothing. Every gradient lies in the span of the support rows, so W is kept as
    `decay` W0 + A S, and a step costs the same in any number of dimensions.
    """

    about = "Baseline: a linear layer trained by SGD"
    paper = "Chen et al., A Closer Look at Few-shot Classification, 2019"
    example = "linear(init='zero', batch=None)"

    init: Literal["uniform", "normal", "zero"] = option("uniform", "how the starting weights are drawn")

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """The bias is the weight of a constant feature of 1: it decays, too."""
        rows, asked = (torch.nn.functional.pad(values.double(), (0, 1), value=1.0) for values in (support, query))
        start = self._start(rows, way, seeds)
        known = Known.of(rows, labels, start)
        weights = torch.zeros_like(known.at_start)  # A: [B, way, n]
        decay = rows.new_ones(1)
        self.train([weights, decay], known, seeds)
        return (weights @ (rows @ asked.mT) + decay * (start @ asked.mT)).mT

    def gradients(self, parameters: Sequence[Tensor], known: Known, rows: slice) -> list[Tensor]:
        """Only the weights of the mini-batch's rows have one; `decay` is moved by the weight decay alone."""
        weights, decay = parameters
        logits = weights @ known.kernel[..., rows] + decay * known.at_start[..., rows]
        of_weights = torch.zeros_like(weights)
        of_weights[..., rows] = residual(logits, known.target[..., rows])
        return [of_weights, torch.zeros_like(decay)]

    def _start(self, rows: Tensor, way: int, seeds: Tensor) -> Tensor:
        """W0 and b0, [B, way, d + 1]; both are drawn by the number of features d, as torch does."""
        d = rows.shape[-1] - 1
        if self.init == "zero":
            return rows.new_zeros(len(rows), way, d + 1)
        scale = ((d + 1) / d) ** 0.5 if self.init == "uniform" else 1.0
        return drawn_weights(seeds, way, d + 1, self.init) * scale


@dataclass(frozen=True)
class CosineHead(SgdMethod):
    """Score: scale g cos(v, x) after 100 epochs of SGD on v and g of each class, from a random start.

    As in the published code, weight normalization leaves each class a length g that is learned (`norm='learned'`, first
    |v|); `norm='unit'` is the pure cosine, g = 1. Every gradient lies in the span of v and the support rows, so v is
    kept as `share` v0 + A S, and a step costs the same in any number of dimensions.
    """

    about = "Baseline++: a cosine classifier trained by SGD"
    paper = "Chen et al., A Closer Look at Few-shot Classification, 2019"
    example = "baseline++(batch=None, norm='unit')"

    scale: float = option(2.0, "factor of the cosines", above=0)
    norm: Literal["learned", "unit"] = option("learned", "the length of each class's weights: learned, or always 1")
    init: Literal["uniform", "normal"] = option("uniform", "how the starting weights are drawn")

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """v0 is drawn, and its length is the first g."""
        rows, asked = (almost_unit(values.double()) for values in (support, query))
        start = drawn_weights(seeds, way, rows.shape[-1], self.init)
        known = Known.of(rows, labels, start)
        weights, share = torch.zeros_like(known.at_start), torch.ones_like(known.start_norm2)
        parameters = [weights, share]
        if self.norm == "learned":
            parameters.append(known.start_norm2.sqrt())
        self.train(parameters, known, seeds)
        _, inverse, factor = self._directions(parameters, known)
        return (factor * inverse * (weights @ (rows @ asked.mT) + share * (start @ asked.mT))).mT

    def gradients(self, parameters: Sequence[Tensor], known: Known, rows: slice) -> list[Tensor]:
        """Those of v leave the component along v out, as the cosine does not depend on it."""
        weights, share = parameters[:2]
        products, inverse, factor = self._directions(parameters, known)
        cosines = products[..., rows] * inverse
        change = residual(factor * cosines, known.target[..., rows])
        along = (change * cosines).sum(-1, keepdim=True)
        radial = factor * along * inverse.square()
        of_weights = -radial * weights
        of_weights[..., rows] += factor * inverse * change
        return [of_weights, -radial * share, self.scale * along][: len(parameters)]

    def _directions(self, parameters: Sequence[Tensor], known: Known) -> tuple[Tensor, Tensor, Tensor]:
        """Products of all v with all rows, [B, way, n], 1 / |v| and scale g, [B, way, 1]."""
        weights, share, *lengths = parameters
        within, at_start = weights @ known.kernel, share * known.at_start
        norm2 = share.square() * known.start_norm2 + (weights * (within + 2 * at_start)).sum(-1, keepdim=True)
        return within + at_start, norm2.rsqrt(), self.scale * (lengths[0] if lengths else torch.ones_like(share))
