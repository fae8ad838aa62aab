"""Heads trained on the support set by gradient descent, and the optimizers, batched over tasks."""

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
INITIAL, SHUFFLES = 0, 1  # purposes of a task's random numbers


class Adam:
    """Adam (Kingma and Ba 2015) for one tensor, without autograd; with weight decay, AdamW."""

    def __init__(self, parameter: Tensor, rate: float, *, decay: float = 0.0, epsilon: float = EPSILON) -> None:
        self._parameter, self._rate, self._steps = parameter, rate, 0
        self._decay, self._epsilon = decay, epsilon
        self._mean, self._square = torch.zeros_like(parameter), torch.zeros_like(parameter)

    def step(self, gradient: Tensor, rate: float | None = None) -> None:
        """Update the parameter by its gradient, optionally with another learning rate."""
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
    """Return the learning rate of a step in a cosine schedule from `rate` to 0."""
    return rate * (1 + math.cos(math.pi * step / steps)) / 2


@dataclass(frozen=True)
class SgdMethod(SeededMethod):
    """Head trained by SGD; default options are those of Chen et al., A Closer Look at Few-shot Classification, 2019.

    Mini-batches have `batch` support rows, in a new random order in each epoch. As in torch.optim.SGD, the momentum of
    the first step is the gradient, without dampening.
    """

    epochs: int = option(100, "passes over the support", least=1)
    batch: int | None = option(4, "support rows in a mini-batch; None: all of them", least=1)
    rate: float = option(0.01, "learning rate of SGD", above=0)
    momentum: float = option(0.9, "momentum of SGD", least=0, most=1)
    dampening: float = option(0.9, "dampening of SGD's momentum", least=0, most=1)
    weight_decay: float = option(1e-3, "weight decay of SGD", least=0, most=1)

    @abstractmethod
    def gradients(self, parameters: Sequence[Tensor], products: SupportProducts, rows: slice) -> list[Tensor]:
        """Compute the gradients of the mini-batch's mean cross-entropy, without weight decay."""

    def train(self, parameters: Sequence[Tensor], products: SupportProducts, seeds: Tensor) -> None:
        """Train in place; parameters[0] is [B, way, n], one weight per support row; the others have no axis of rows."""
        count = products.kernel.shape[-1]
        batch_size = min(self.batch or count, count)
        buffers: list[Tensor] = []
        for epoch in range(self.epochs):
            if batch_size == count:
                self._step(parameters, buffers, self.gradients(parameters, products, slice(None)))
                continue
            # Everything is permuted to the epoch's order, so that a mini-batch is a slice.
            order = self.order(seeds, epoch, count)
            weights = select_columns(parameters[0], order)
            if buffers:
                buffers[0] = select_columns(buffers[0], order)
            shuffled = products.in_order(order)
            for start in range(0, count, batch_size):
                rows = slice(start, min(start + batch_size, count))
                current = [weights, *parameters[1:]]
                self._step(current, buffers, self.gradients(current, shuffled, rows))
            index = order.unsqueeze(1).expand_as(weights)
            parameters[0].scatter_(-1, index, weights)
            buffers[0] = torch.empty_like(weights).scatter_(-1, index, buffers[0])

    def order(self, seeds: Tensor, epoch: int, rows: int) -> Tensor:
        """Draw the order of the support rows in an epoch, [B, rows]."""
        return task_draws.permutation(seeds, SHUFFLES, epoch, size=rows)

    def _step(self, parameters: Sequence[Tensor], buffers: list[Tensor], gradients: Sequence[Tensor]) -> None:
        """Take one step; `buffers`, empty before the first step, hold the momentum."""
        changes = [g.add_(p, alpha=self.weight_decay) for p, g in zip(parameters, gradients, strict=True)]
        if not buffers or self.momentum == 0:
            buffers[:] = changes
        else:
            for buffer, change in zip(buffers, changes, strict=True):
                buffer.mul_(self.momentum).add_(change, alpha=1 - self.dampening)
        for parameter, buffer in zip(parameters, buffers, strict=True):
            parameter.sub_(buffer, alpha=self.rate)


@dataclass(frozen=True)
class SupportProducts:
    """Inner products of the support rows, which suffice for gradient descent, as gradients lie in the rows' span.

    kernel: inner products of the rows, [B, n, n]
    initial_products: inner products of the rows with the initial weights, [B, way, n]
    initial_norm2: squared lengths of the initial weights, [B, way, 1]
    target: one-hot classes of the rows, [B, way, n]
    """

    kernel: Tensor
    initial_products: Tensor
    initial_norm2: Tensor
    target: Tensor

    @classmethod
    def of(cls, rows: Tensor, labels: Tensor, initial_weights: Tensor) -> SupportProducts:
        """Compute them from float64 rows [B, n, d], labels [B, n] and initial weights [B, way, d]."""
        target = one_hot(labels, initial_weights.shape[1]).mT.contiguous()
        return cls(rows @ rows.mT, initial_weights @ rows.mT, initial_weights.square().sum(-1, keepdim=True), target)

    def in_order(self, order: Tensor) -> SupportProducts:
        """Permute the rows to the order [B, n]."""
        kernel = select_columns(select_columns(self.kernel, order).mT, order)
        return SupportProducts(
            kernel, select_columns(self.initial_products, order), self.initial_norm2, select_columns(self.target, order)
        )


def select_columns(values: Tensor, rows: Tensor) -> Tensor:
    """Select the columns `rows` [B, b] of values [B, k, n]: [B, k, b]."""
    return values.gather(-1, rows.unsqueeze(1).expand(-1, values.shape[1], -1))


def residual(logits: Tensor, target: Tensor) -> Tensor:
    """Compute the gradient of the mean cross-entropy with respect to the logits [B, way, b]."""
    gradient: Tensor = (logits.softmax(1) - target) / logits.shape[-1]
    return gradient


def draw_weights(seeds: Tensor, way: int, d: int, init: str) -> Tensor:
    """Draw initial weights [B, way, d]: `uniform` within 1 / sqrt(d) of 0, as torch.nn.Linear, or `normal` / 100."""
    entries = task_draws.entries(seeds, INITIAL, way, d)
    if init == "normal":
        return task_draws.normal(*entries) / 100
    return (2 * task_draws.uniform(task_draws.bits(*entries)) - 1) / math.sqrt(d)


@dataclass(frozen=True)
class LinearHead(SgdMethod):
    """Score: W x + b after 100 epochs of SGD on the cross-entropy, from a random initialization.

    `init='zero'` with `batch=None` is deterministic. Every gradient lies in the span of the support rows, so W is
    represented as `decay` W0 + A S, and a step costs the same in any number of dimensions.
    """

    about = "Baseline: a linear layer trained by SGD"
    paper = "Chen et al., A Closer Look at Few-shot Classification, 2019"
    example = "linear(init='zero', batch=None)"

    init: Literal["uniform", "normal", "zero"] = option("uniform", "distribution of the initial weights")

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Train and score, with the bias as the weight of a constant feature 1, so that it decays too."""
        rows, queries = (torch.nn.functional.pad(values.double(), (0, 1), value=1.0) for values in (support, query))
        initial_weights = self._draw_initial(rows, way, seeds)
        products = SupportProducts.of(rows, labels, initial_weights)
        weights = torch.zeros_like(products.initial_products)  # A: [B, way, n]
        decay = rows.new_ones(1)
        self.train([weights, decay], products, seeds)
        return (weights @ (rows @ queries.mT) + decay * (initial_weights @ queries.mT)).mT

    def gradients(self, parameters: Sequence[Tensor], products: SupportProducts, rows: slice) -> list[Tensor]:
        """Compute gradients, nonzero only for weights of the mini-batch's rows; only weight decay changes `decay`."""
        weights, decay = parameters
        logits = weights @ products.kernel[..., rows] + decay * products.initial_products[..., rows]
        weight_gradient = torch.zeros_like(weights)
        weight_gradient[..., rows] = residual(logits, products.target[..., rows])
        return [weight_gradient, torch.zeros_like(decay)]

    def _draw_initial(self, rows: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Draw W0 and b0, [B, way, d + 1], both scaled by the number of features d, as torch does."""
        d = rows.shape[-1] - 1
        if self.init == "zero":
            return rows.new_zeros(len(rows), way, d + 1)
        scale = ((d + 1) / d) ** 0.5 if self.init == "uniform" else 1.0
        return draw_weights(seeds, way, d + 1, self.init) * scale


@dataclass(frozen=True)
class CosineHead(SgdMethod):
    """Score: scale g cos(v, x) after 100 epochs of SGD on v and g of each class, from a random initialization.

    As in the published code, weight normalization gives each class a learned length g (`norm='learned'`, initially
    |v|); `norm='unit'` is the pure cosine, g = 1. Every gradient lies in the span of v and the support rows, so v is
    represented as `share` v0 + A S, and a step costs the same in any number of dimensions.
    """

    about = "Baseline++: a cosine classifier trained by SGD"
    paper = "Chen et al., A Closer Look at Few-shot Classification, 2019"
    example = "baseline++(batch=None, norm='unit')"

    scale: float = option(2.0, "factor of the cosines", above=0)
    norm: Literal["learned", "unit"] = option(
        "learned", "length of each class's weights: learned, or fixed at 1 (unit)"
    )
    init: Literal["uniform", "normal"] = option("uniform", "distribution of the initial weights")

    def seeded_scores(self, support: Tensor, labels: Tensor, query: Tensor, way: int, seeds: Tensor) -> Tensor:
        """Train and score; v0 is drawn, and its length is the initial g."""
        rows, queries = (almost_unit(values.double()) for values in (support, query))
        initial_weights = draw_weights(seeds, way, rows.shape[-1], self.init)
        products = SupportProducts.of(rows, labels, initial_weights)
        weights, share = torch.zeros_like(products.initial_products), torch.ones_like(products.initial_norm2)
        parameters = [weights, share]
        if self.norm == "learned":
            parameters.append(products.initial_norm2.sqrt())
        self.train(parameters, products, seeds)
        _, inverse, factor = self._directions(parameters, products)
        return (factor * inverse * (weights @ (rows @ queries.mT) + share * (initial_weights @ queries.mT))).mT

    def gradients(self, parameters: Sequence[Tensor], products: SupportProducts, rows: slice) -> list[Tensor]:
        """Compute gradients; those of v are orthogonal to v, as the cosine does not depend on its length."""
        weights, share = parameters[:2]
        row_products, inverse, factor = self._directions(parameters, products)
        cosines = row_products[..., rows] * inverse
        logit_gradient = residual(factor * cosines, products.target[..., rows])
        along = (logit_gradient * cosines).sum(-1, keepdim=True)
        radial = factor * along * inverse.square()
        weight_gradient = -radial * weights
        weight_gradient[..., rows] += factor * inverse * logit_gradient
        return [weight_gradient, -radial * share, self.scale * along][: len(parameters)]

    def _directions(self, parameters: Sequence[Tensor], products: SupportProducts) -> tuple[Tensor, Tensor, Tensor]:
        """Compute products of all v with all rows [B, way, n], and 1 / |v| and scale g, [B, way, 1] each."""
        weights, share, *lengths = parameters
        within, initial_products = weights @ products.kernel, share * products.initial_products
        norm2 = share.square() * products.initial_norm2 + (weights * (within + 2 * initial_products)).sum(
            -1, keepdim=True
        )
        return (
            within + initial_products,
            norm2.rsqrt(),
            self.scale * (lengths[0] if lengths else torch.ones_like(share)),
        )
