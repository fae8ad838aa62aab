"""Gradient steps on the support within each task, batched over tasks, without a copy of the network per task."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from shotproof.core.errors import InputError
from shotproof.models.batch_norm import stateless_batch_norm
from shotproof.models.network import FewShotNetwork

Weights = dict[str, Tensor]
BatchNorm = Literal["batch", "running"]


class Viewed(nn.Module):
    """A network seen by its vectors, or by the logits of its head: `functional_call` calls `forward` only.

    As in `FewShotNetwork`, the backbone computes in bfloat16 on a GPU; under `vmap` no memory format can be asked for.
    """

    def __init__(self, net: FewShotNetwork, logits: bool = False) -> None:
        super().__init__()
        self.net = net
        self.logits = logits

    def forward(self, items: Tensor) -> Tensor:
        """Items [n, channels, height, width] to vectors [n, dim] or logits [n, classes], as precise as the items."""
        # Of the ways to compute attention, `vmap` knows this one.
        attention = sdpa_kernel(SDPBackend.MATH)
        with attention, torch.autocast("cuda", torch.bfloat16, enabled=items.is_cuda):
            vectors = self.net.backbone.vectors(items)
        vectors = vectors.to(items.dtype)
        return self.net.head(vectors) if self.logits else vectors

    def call(self, weights: Weights, items: Tensor) -> Tensor:
        """The same with other weights, by their names in the network."""
        called: Tensor = functional_call(self, {f"net.{name}": each for name, each in weights.items()}, (items,))
        return called


@contextlib.contextmanager
def normalized_by(net: nn.Module, how: BatchNorm, twice: bool = False) -> Iterator[None]:
    """Within it, batch norm uses the statistics of each batch, or its running ones, and leaves the latter alone.

    Args:
        net: whose batch norms
        how: which statistics
        twice: whether what is computed is differentiated twice. Under `vmap`, PyTorch's own batch norm then leaves out
            how the statistics depend on the input; here they are computed step by step.
    """
    norms = [one for one in net.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    modes = [one.training for one in norms]
    try:
        for one in norms:
            one.training = how == "batch"
            if twice and how == "batch":
                one.forward = functools.partial(_normalized_by_batch, one)  # type: ignore[method-assign]
        with stateless_batch_norm(net):
            yield
    finally:
        for one, mode in zip(norms, modes, strict=True):
            one.training = mode
            vars(one).pop("forward", None)


def _normalized_by_batch(norm: nn.modules.batchnorm._BatchNorm, values: Tensor) -> Tensor:
    """What batch norm does in training, without its running statistics."""
    axes = [0, *range(2, values.ndim)]
    precise = values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
    centered = precise - precise.mean(axes, keepdim=True)
    scaled = centered * (centered.square().mean(axes, keepdim=True) + norm.eps).rsqrt()
    if norm.affine:
        shape = (1, -1, *(1 for _ in axes[1:]))
        scaled = scaled * norm.weight.view(shape) + norm.bias.view(shape)
    return scaled.to(values.dtype)


def adapted_scores(
    net: FewShotNetwork,
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    *,
    adapts: Callable[[str], bool],
    steps: int,
    rate: float,
    first_order: bool = False,
    batch_norm: BatchNorm = "batch",
) -> Tensor:
    """The logits of queries after gradient steps on the support, [B, m, way], with gradients to where they started.

    Args:
        net: with a head from vectors to the logits of the classes of a task; its weights stay as they are
        support, labels, query: items [B, n, channels, height, width], [B, n], and items [B, m, ...]
        adapts: which parameters take the steps, by their names
        steps: how many, each w - rate * gradient of the mean cross-entropy of the support
        rate: the learning rate
        first_order: take gradients as constants, so that nothing is differentiated twice
        batch_norm: which statistics normalize each pass
    """
    viewed = Viewed(net, logits=True)
    start: Weights = {name: each for name, each in net.named_parameters() if adapts(name)}

    def support_loss(weights: Weights, items: Tensor, classes: Tensor) -> Tensor:
        return functional.cross_entropy(viewed.call(weights, items), classes)

    def one_task(items: Tensor, classes: Tensor, asked: Tensor) -> Tensor:
        weights = start
        for _ in range(steps):
            gradients = grad(support_loss)(weights, items, classes)
            if first_order:
                gradients = {name: each.detach() for name, each in gradients.items()}
            weights = {name: each - rate * gradients[name] for name, each in weights.items()}
        return viewed.call(weights, asked)

    with normalized_by(net, batch_norm, twice=torch.is_grad_enabled() and not first_order):
        scores: Tensor = vmap(one_task, randomness="different")(support, labels, query)
    return scores


def adapted_linear(
    weight: Tensor, bias: Tensor, support: Tensor, labels: Tensor, steps: int, rate: float, first_order: bool = False
) -> tuple[Tensor, Tensor]:
    """A linear head [way, d] and [way] after gradient steps on vectors [B, n, d]: [B, way, d] and [B, 1, way].

    The gradient of the mean cross-entropy in closed form, which autograd sees through where it is not first order.
    """
    target = functional.one_hot(labels, len(weight)).to(support.dtype)
    weights, biases = weight.expand(len(support), -1, -1), bias.expand(len(support), 1, -1)
    for _ in range(steps):
        slope = (torch.baddbmm(biases, support, weights.mT).softmax(2) - target) / support.shape[1]
        of_weights, of_biases = slope.mT @ support, slope.sum(1, keepdim=True)
        if first_order:
            of_weights, of_biases = of_weights.detach(), of_biases.detach()
        weights, biases = weights - rate * of_weights, biases - rate * of_biases
    return weights, biases


def linear_head(net: FewShotNetwork, way: int) -> nn.Linear:
    """The learned start of a linear head; InputError where tasks have another number of classes than it has."""
    head = net.head.linear if hasattr(net.head, "linear") else net.head
    assert isinstance(head, nn.Linear)
    if head.out_features != way:
        raise InputError(
            f"the model has learned a head for {head.out_features} classes, the tasks have {way}: train one with "
            f"way={way}, or draw tasks of {head.out_features} classes"
        )
    return head
