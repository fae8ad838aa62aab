"""Gradient steps on the support within each task, batched over tasks, without a copy of the network per task."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from shotproof.core.errors import InputError
from shotproof.models.network import FewShotNetwork

Weights = dict[str, Tensor]
BatchNorm = Literal["batch", "running"]


@contextlib.contextmanager
def stateless_batch_norm(network: nn.Module) -> Iterator[None]:
    """Within it, batch norm in training mode leaves its running statistics alone, as `torch.func` demands.

    Example:
        >>> import torch
        >>> norm = nn.BatchNorm2d(2)
        >>> with stateless_batch_norm(norm):
        ...     _ = norm(torch.ones(3, 2, 4, 4))
        >>> norm.running_mean.tolist(), int(norm.num_batches_tracked)
        ([0.0, 0.0], 0)
    """
    kept = [one for one in network.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    tracked = [one.track_running_stats for one in kept]
    for one in kept:
        one.track_running_stats = False
    try:
        yield
    finally:
        for one, before in zip(kept, tracked, strict=True):
            one.track_running_stats = before


class Viewed(nn.Module):
    """A network seen by its vectors, or by the logits of its head: `functional_call` calls `forward` only.

    As in `FewShotNetwork`, the backbone computes in bfloat16 on a GPU; under `vmap` no memory format can be asked for.
    """

    def __init__(self, net: FewShotNetwork, logits: bool = False, precise: bool = False) -> None:
        super().__init__()
        self.net = net
        self.logits = logits
        self.precise = precise  # float32 on a GPU too

    def forward(self, items: Tensor) -> Tensor:
        """Items [n, channels, height, width] to vectors [n, dim] or logits [n, classes], as precise as the items."""
        # Of the ways to compute attention, `vmap` knows this one.
        attention = sdpa_kernel(SDPBackend.MATH)
        with attention, torch.autocast("cuda", torch.bfloat16, enabled=items.is_cuda and not self.precise):
            vectors = self.net.backbone.vectors(items)
        vectors = vectors.to(items.dtype)
        return self.net.head(vectors) if self.logits else vectors

    def call(self, weights: Weights, items: Tensor) -> Tensor:
        """The same with other weights, by their names in the network."""
        called: Tensor = functional_call(self, {f"net.{name}": each for name, each in weights.items()}, (items,))
        return called


@contextlib.contextmanager
def normalized_by(net: nn.Module, how: BatchNorm, stepwise: bool = False) -> Iterator[None]:
    """Within it, batch norm uses the statistics of each batch, or its running ones, and leaves the latter alone.

    Args:
        net: whose batch norms
        how: which statistics
        stepwise: whether it is computed in steps that `vmap` takes and differentiates rightly. PyTorch's own batch norm
            has no gradient there in bfloat16, on a GPU not even values; differentiated twice it leaves out how the
            statistics of a batch depend on the input.
    """
    norms = [one for one in net.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    before = [(one.__class__, one.training) for one in norms]
    try:
        for one in norms:
            one.training = how == "batch"
            if stepwise:
                one.__class__ = _StepwiseBatchNorm
        with stateless_batch_norm(net):
            yield
    finally:
        for one, (kind, mode) in zip(norms, before, strict=True):
            one.__class__, one.training = kind, mode


class _StepwiseBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch norm in steps that `vmap` differentiates rightly; its running statistics stay as they are.

    A class that a module takes for a while, and no new `forward` of the module, which would be compiled anew each time.
    """

    def forward(self, input: Tensor) -> Tensor:
        axes = [0, *range(2, input.ndim)]
        precise = input.float() if input.dtype in (torch.bfloat16, torch.float16) else input
        shape = (1, -1, *(1 for _ in axes[1:]))
        if self.training:
            variance, mean = torch.var_mean(precise, axes, correction=0, keepdim=True)
        else:
            assert self.running_mean is not None
            assert self.running_var is not None
            variance, mean = self.running_var.view(shape), self.running_mean.view(shape)
        scale = (variance + self.eps).rsqrt()
        if self.affine:
            scale = scale * self.weight.view(shape)
        shift = (self.bias.view(shape) if self.affine else 0) - mean * scale
        return torch.addcmul(shift, precise, scale).to(input.dtype)


def gradient_step(viewed: Viewed, rate: float, first_order: bool) -> Callable[[Weights, Tensor, Tensor], Weights]:
    """A step of one task: w - rate * gradient of the mean cross-entropy of the support, for each of the weights.

    Args:
        viewed: the network by its logits
        rate: the learning rate
        first_order: whether gradients are taken as constants, so that nothing is differentiated twice

    Returns:
        A function of the weights, items [n, channels, height, width] and classes [n], which gives the next weights.
    """

    def loss(weights: Weights, items: Tensor, classes: Tensor) -> Tensor:
        return functional.cross_entropy(viewed.call(weights, items), classes)

    def step(weights: Weights, items: Tensor, classes: Tensor) -> Weights:
        gradients = grad(loss)(weights, items, classes)
        if first_order:
            gradients = {name: each.detach() for name, each in gradients.items()}
        return {name: each - rate * gradients[name] for name, each in weights.items()}

    return step


def adapted(
    net: FewShotNetwork,
    support: Tensor,
    labels: Tensor,
    *,
    adapts: Callable[[str], bool],
    steps: int,
    rate: float,
    first_order: bool = False,
    batch_norm: BatchNorm = "batch",
    at_once: bool | None = None,
) -> Callable[[Tensor], Tensor]:
    """The network after gradient steps on the support of each task, with gradients to where they started.

    Args:
        net: with a head from vectors to the logits of the classes of a task; its weights stay as they are
        support, labels: items [B, n, channels, height, width], and [B, n]
        adapts: which parameters take the steps, by their names
        steps: how many, each w - rate * gradient of the mean cross-entropy of the support
        rate: the learning rate
        first_order: take gradients as constants, so that nothing is differentiated twice
        batch_norm: which statistics normalize each pass
        at_once: as `over_tasks` takes it

    Returns:
        A function from queries [B, m, channels, height, width] to their logits, [B, m, way].
    """
    trains = torch.is_grad_enabled()
    viewed = Viewed(net, logits=True, precise=trains and not net.backbone.steps_together)
    step = gradient_step(viewed, rate, first_order)
    weights: Weights = {name: each for name, each in net.named_parameters() if adapts(name)}
    shared = True  # all tasks begin with the same weights
    in_half = support.is_cuda and not viewed.precise and net.backbone.steps_together
    twice = trains and not first_order and batch_norm == "batch"
    with normalized_by(net, batch_norm, stepwise=in_half or twice):
        for _ in range(steps):
            step_of_all = net.compiled(f"step, {shared=}", over_tasks(net, step, shared, at_once))
            weights = step_of_all(weights, support, labels)
            shared = False
    score = net.compiled(f"scores, {shared=}", over_tasks(net, viewed.call, shared, at_once))

    def scores(query: Tensor) -> Tensor:
        with normalized_by(net, batch_norm, stepwise=in_half):
            logits: Tensor = score(weights, query)
        return logits

    return scores


def over_tasks(
    net: FewShotNetwork, function: Callable[..., Any], shared: bool = False, at_once: bool | None = None
) -> Callable[..., Any]:
    """A function of one task's weights and inputs as one of all tasks', each of which has a leading axis of tasks.

    Args:
        net: the network that the function calls
        function: gives a tensor, or weights
        shared: whether the weights are those of all tasks, without the axis
        at_once: whether tasks are computed together or one by one; None: one by one where a backbone's weights are a
            task's own on a CPU, on which such convolutions are slower together (MAML on Conv64F by a fifth), or the
            backbone does not take steps together
    """

    def batched(weights: Weights, *inputs: Tensor) -> Any:
        own_backbone = any(name.startswith("backbone.") for name in weights)
        together = inputs[0].is_cuda and net.backbone.steps_together
        if at_once if at_once is not None else (together or not own_backbone):
            axes = (None if shared else 0, *(0 for _ in inputs))
            return vmap(function, in_dims=axes, randomness="different")(weights, *inputs)
        given = [
            weights if shared else {name: each[task] for name, each in weights.items()}
            for task in range(len(inputs[0]))
        ]
        found = [function(own, *(_of_task(each, task) for each in inputs)) for task, own in enumerate(given)]
        if isinstance(found[0], Tensor):
            return torch.stack(found)
        return {name: torch.stack([one[name] for one in found]) for name in found[0]}

    return batched


def _of_task(inputs: Tensor, task: int) -> Tensor:
    """A task's part; of items with their channels last, in which a CPU too computes convolutions best."""
    own = inputs[task]
    return own.contiguous(memory_format=torch.channels_last) if own.ndim == 4 else own


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
