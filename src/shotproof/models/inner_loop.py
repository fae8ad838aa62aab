"""MAML inner loop: gradient steps on the support set of each task, batched over tasks without copying the network."""

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
    """Keep batch norm in training mode from updating its running statistics, as `torch.func` requires.

    Example:
        >>> import torch
        >>> norm = nn.BatchNorm2d(2)
        >>> with stateless_batch_norm(norm):
        ...     _ = norm(torch.ones(3, 2, 4, 4))
        >>> norm.running_mean.tolist(), int(norm.num_batches_tracked)
        ([0.0, 0.0], 0)
    """
    norms = [norm for norm in network.modules() if isinstance(norm, nn.modules.batchnorm._BatchNorm)]
    tracked = [norm.track_running_stats for norm in norms]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm, was_tracked in zip(norms, tracked, strict=True):
            norm.track_running_stats = was_tracked


class NetworkView(nn.Module):
    """Wrapper that returns the network's vectors, or its head's logits: `functional_call` calls only `forward`.

    As in `FewShotNetwork`, the backbone computes in bfloat16 on a GPU. Memory formats cannot be set under `vmap`.
    """

    def __init__(self, net: FewShotNetwork, logits: bool = False, precise: bool = False) -> None:
        super().__init__()
        self.net = net
        self.logits = logits
        self.precise = precise  # float32 on a GPU as well

    def forward(self, items: Tensor) -> Tensor:
        """Map items [n, channels, height, width] to vectors [n, dim] or logits [n, classes] of the same dtype."""
        # `vmap` supports only this attention implementation.
        attention = sdpa_kernel(SDPBackend.MATH)
        with attention, torch.autocast("cuda", torch.bfloat16, enabled=items.is_cuda and not self.precise):
            vectors = self.net.backbone.vectors(items)
        vectors = vectors.to(items.dtype)
        return self.net.head(vectors) if self.logits else vectors

    def call(self, weights: Weights, items: Tensor) -> Tensor:
        """Compute the output with other weights, keyed by their names in the network."""
        output: Tensor = functional_call(self, {f"net.{name}": weight for name, weight in weights.items()}, (items,))
        return output


@contextlib.contextmanager
def normalized_by(net: nn.Module, how: BatchNorm, stepwise: bool = False) -> Iterator[None]:
    """Make batch norm use the statistics of each batch, or its running statistics, without updating the latter.

    Args:
        net: network that contains the batch norm layers
        how: statistics to use
        stepwise: whether to compute batch norm from elementary operations, which `vmap` differentiates correctly.
            PyTorch's fused batch norm has no gradient under `vmap` in bfloat16, and on a GPU not even values. Its
            second derivative ignores that the statistics of a batch depend on the input.
    """
    norms = [norm for norm in net.modules() if isinstance(norm, nn.modules.batchnorm._BatchNorm)]
    originals = [(norm.__class__, norm.training) for norm in norms]
    try:
        for norm in norms:
            norm.training = how == "batch"
            if stepwise:
                norm.__class__ = _ElementaryBatchNorm
        with stateless_batch_norm(net):
            yield
    finally:
        for norm, (kind, mode) in zip(norms, originals, strict=True):
            norm.__class__, norm.training = kind, mode


class _ElementaryBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch norm from elementary operations, which `vmap` differentiates correctly, with fixed running statistics.

    It replaces the class of a module temporarily: replacing the module's `forward` would cause recompilation.
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


def gradient_step(view: NetworkView, rate: float, first_order: bool) -> Callable[[Weights, Tensor, Tensor], Weights]:
    """Build the gradient step of one task: w - rate * gradient of the mean cross-entropy on the support set.

    Args:
        viewed: network that returns logits
        rate: learning rate
        first_order: use the first-order approximation, which treats gradients as constants

    Returns:
        A function from weights, items [n, channels, height, width] and classes [n] to the updated weights.
    """

    def loss(weights: Weights, items: Tensor, classes: Tensor) -> Tensor:
        return functional.cross_entropy(view.call(weights, items), classes)

    def step(weights: Weights, items: Tensor, classes: Tensor) -> Weights:
        gradients = grad(loss)(weights, items, classes)
        if first_order:
            gradients = {name: tensor.detach() for name, tensor in gradients.items()}
        return {name: tensor - rate * gradients[name] for name, tensor in weights.items()}

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
    """Adapt the network to the support set of each task by gradient steps that can be differentiated.

    Args:
        net: network whose head maps vectors to the logits of a task's classes; its weights do not change
        support, labels: items [B, n, channels, height, width], and [B, n]
        adapts: selects by name which parameters are adapted
        steps: number of steps, each w - rate * gradient of the mean cross-entropy on the support set
        rate: learning rate
        first_order: use the first-order approximation, which treats gradients as constants
        batch_norm: statistics that normalize each pass
        at_once: see `over_tasks`

    Returns:
        A function from queries [B, m, channels, height, width] to their logits, [B, m, way].
    """
    has_gradients = torch.is_grad_enabled()
    view = NetworkView(net, logits=True, precise=has_gradients and not net.backbone.steps_together)
    step = gradient_step(view, rate, first_order)
    weights: Weights = {name: parameter for name, parameter in net.named_parameters() if adapts(name)}
    shared = True  # all tasks start from the same weights
    half_precision = support.is_cuda and not view.precise and net.backbone.steps_together
    second_order = has_gradients and not first_order and batch_norm == "batch"
    with normalized_by(net, batch_norm, stepwise=half_precision or second_order):
        for _ in range(steps):
            step_all_tasks = net.compiled(f"step, {shared=}", over_tasks(net, step, shared, at_once))
            weights = step_all_tasks(weights, support, labels)
            shared = False
    score = net.compiled(f"scores, {shared=}", over_tasks(net, view.call, shared, at_once))

    def scores(query: Tensor) -> Tensor:
        with normalized_by(net, batch_norm, stepwise=half_precision):
            logits: Tensor = score(weights, query)
        return logits

    return scores


def over_tasks(
    net: FewShotNetwork, function: Callable[..., Any], shared: bool = False, at_once: bool | None = None
) -> Callable[..., Any]:
    """Turn a function of one task's weights and inputs into one of all tasks, with a leading axis of tasks.

    Args:
        net: network that the function calls
        function: returns a tensor or weights
        shared: whether all tasks share the weights, which then have no task axis
        at_once: whether to compute all tasks at once with `vmap`. None computes them one by one if each task has its
            own backbone weights on a CPU, where batched convolutions are slower (MAML on Conv64F by a fifth), or if
            the backbone does not support batched steps
    """

    def apply_to_tasks(weights: Weights, *inputs: Tensor) -> Any:
        adapts_backbone = any(name.startswith("backbone.") for name in weights)
        is_fast_batched = inputs[0].is_cuda and net.backbone.steps_together
        if at_once if at_once is not None else (is_fast_batched or not adapts_backbone):
            axes = (None if shared else 0, *(0 for _ in inputs))
            return vmap(function, in_dims=axes, randomness="different")(weights, *inputs)
        task_weights = [
            weights if shared else {name: tensor[task] for name, tensor in weights.items()}
            for task in range(len(inputs[0]))
        ]
        outputs = [
            function(weights_of_task, *(_select_task(tensor, task) for tensor in inputs))
            for task, weights_of_task in enumerate(task_weights)
        ]
        if isinstance(outputs[0], Tensor):
            return torch.stack(outputs)
        return {name: torch.stack([output[name] for output in outputs]) for name in outputs[0]}

    return apply_to_tasks


def _select_task(inputs: Tensor, task: int) -> Tensor:
    """Select one task's part of an input, with channels last for items, which is fastest for convolutions on a CPU."""
    selected = inputs[task]
    return selected.contiguous(memory_format=torch.channels_last) if selected.ndim == 4 else selected


def adapted_linear(
    weight: Tensor, bias: Tensor, support: Tensor, labels: Tensor, steps: int, rate: float, first_order: bool = False
) -> tuple[Tensor, Tensor]:
    """Adapt a linear head [way, d] and [way] by gradient steps on vectors [B, n, d]: [B, way, d] and [B, 1, way].

    The gradient of the mean cross-entropy has a closed form, which autograd differentiates unless first_order is set.
    """
    target = functional.one_hot(labels, len(weight)).to(support.dtype)
    weights, biases = weight.expand(len(support), -1, -1), bias.expand(len(support), 1, -1)
    for _ in range(steps):
        logit_gradient = (torch.baddbmm(biases, support, weights.mT).softmax(2) - target) / support.shape[1]
        weight_gradient, bias_gradient = logit_gradient.mT @ support, logit_gradient.sum(1, keepdim=True)
        if first_order:
            weight_gradient, bias_gradient = weight_gradient.detach(), bias_gradient.detach()
        weights, biases = weights - rate * weight_gradient, biases - rate * bias_gradient
    return weights, biases


def linear_head(net: FewShotNetwork, way: int) -> nn.Linear:
    """Return the learned initial linear head. Raise InputError if the tasks have another number of classes."""
    head = net.head.linear if hasattr(net.head, "linear") else net.head
    assert isinstance(head, nn.Linear)
    if head.out_features != way:
        raise InputError(
            f"the model's head has {head.out_features} classes, but the tasks have {way}: train a model with "
            f"way={way}, or draw tasks of {head.out_features} classes"
        )
    return head
