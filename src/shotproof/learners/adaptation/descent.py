"""Gradient descent on the weights of many tasks at once, and the losses and augmentation that adaptations share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn import functional

from shotproof.functional import task_draws
from shotproof.models.inner_loop import NetworkView, Weights, over_tasks

if TYPE_CHECKING:
    from shotproof.learners.adaptation.adaptation import DecodedTasks
    from shotproof.models.network import FewShotNetwork

SCALE = 10.0  # factor that turns cosines into logits
Loss = Callable[..., Tensor]  # maps the weights of one task and its inputs to a scalar
COIN, FLIP, BRIGHTNESS, SATURATION, CONTRAST, DOWN, RIGHT = range(7)  # purposes of random numbers
SHIFT = 0.125  # largest shift, as a fraction of the side


def stack_parameters(net: FewShotNetwork, tasks: int, is_selected: Callable[[str], bool]) -> Weights:
    """Copy the selected parameters once for each task: [tasks, ...]."""
    return {
        name: parameter.detach().expand(tasks, *parameter.shape).clone()
        for name, parameter in net.named_parameters()
        if is_selected(name)
    }


def descend(
    net: FewShotNetwork,
    loss: Loss,
    weights: Weights,
    optimizer: torch.optim.Optimizer,
    inputs: Iterable[Sequence[Tensor]],
    decay_steps: int | None = None,
) -> None:
    """Take one optimizer step in place for each of the inputs; weights and inputs have a leading axis of tasks.

    PyTorch's optimizers update each number separately, and each task's gradients are those of its own loss, so one
    optimizer on stacked weights is equivalent to one independent optimizer per task.

    Args:
        net: network that the loss calls
        loss: loss of one task
        weights: weights to optimize
        optimizer: optimizer of these weights
        inputs: for each step, the arguments of the loss after the weights
        decay_steps: number of steps of a cosine schedule that takes learning rates to zero; None: constant rates
    """
    gradient_function = over_tasks(net, grad(loss))
    rates = [group["lr"] for group in optimizer.param_groups]
    for step, step_inputs in enumerate(inputs):
        gradients = gradient_function(weights, *step_inputs)
        for name, weight in weights.items():
            weight.grad = gradients[name]
        if decay_steps:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * (1 + math.cos(math.pi * step / decay_steps)) / 2
        optimizer.step()
    for weight in weights.values():
        weight.grad = None


def cosine_logits(support: Tensor, target: Tensor, query: Tensor) -> Tensor:
    """Compute 10 times the cosines of queries [m, d] with the class means of support [n, d], for one task.

    `target` [n, way] is the one-hot classes of the support.
    """
    means = target.T @ support / target.sum(0).clamp(min=1)[:, None]
    return SCALE * functional.normalize(query, dim=1) @ functional.normalize(means, dim=1).T


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Compute the mean cross-entropy of logits [n, way] with one-hot classes."""
    return -(target * logits.log_softmax(1)).sum(1).mean()


def prototype_loss(embed: Callable[[Weights, Tensor], Tensor]) -> Loss:
    """Build the loss of a task: cross-entropy of its augmented support by the class means of the original support.

    Args:
        embed: maps a task's weights and items [n, channels, height, width] to vectors [n, d]
    """

    def loss(weights: Weights, support: Tensor, target: Tensor, augmented: Tensor) -> Tensor:
        both = embed(weights, torch.cat([support, augmented]))
        count = len(support)
        return cross_entropy(cosine_logits(both[:count], target, both[count:]), target)

    return loss


def support_loss(embed: Callable[[Weights, Tensor], Tensor]) -> Loss:
    """Build the loss of a task: cross-entropy of its support by the support's own class means."""

    def loss(weights: Weights, support: Tensor, target: Tensor) -> Tensor:
        vectors = embed(weights, support)
        return cross_entropy(cosine_logits(vectors, target, vectors), target)

    return loss


def prototype_scores(
    net: FewShotNetwork, embed: Callable[[Weights, Tensor], Tensor], weights: Weights, tasks: DecodedTasks
) -> Tensor:
    """Score queries by cosines with class means, with each task's weights: [B, m, way]."""

    def score_task(task_weights: Weights, support: Tensor, target: Tensor, query: Tensor) -> Tensor:
        return cosine_logits(embed(task_weights, support), target, embed(task_weights, query))

    scores: Tensor = over_tasks(net, score_task)(weights, tasks.support, tasks.target, tasks.query)
    return scores


def frozen_scores(net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
    """Score queries by cosines with class means, without adapting the network: [B, m, way]."""
    scores: Tensor = vmap(cosine_logits)(net(tasks.support), tasks.target, net(tasks.query))
    return scores


def embedding_function(net: FewShotNetwork) -> Callable[[Weights, Tensor], Tensor]:
    """Return a function from weights, keyed by their names in the network, and items to vectors."""
    return adapting_view(net).call


def adapting_view(net: FewShotNetwork, logits: bool = False) -> NetworkView:
    """Return the network as adaptations differentiate it: in float32 if tasks take their steps together.

    PyTorch's batch norm has no gradient in bfloat16 under `vmap`.
    """
    return NetworkView(net, logits, precise=net.backbone.steps_together)


def augment_support(support: Tensor, seeds: Tensor, step: int, probability: float) -> Tensor:
    """Augment support items [B, n, channels, height, width] as P>M>F does, in units of the network's input.

    With the given probability all items of a task are augmented: flipped horizontally together or not at all, and each
    shifted separately, padded with zeros. Brightness, saturation and contrast of images vary as well.
    """
    count, channels, (height, width) = support.shape[1], support.shape[2], support.shape[3:]

    def draw(purpose: int, items: int) -> Tensor:
        number = torch.arange(items, device=seeds.device)
        counters = (torch.full_like(seeds, counter)[:, None] for counter in (purpose, step))
        return task_draws.uniform(task_draws.bits(seeds[:, None], *counters, number)).float()

    def draw_per_item(purpose: int) -> Tensor:
        return draw(purpose, count)[..., None, None, None]

    values = torch.where(draw(FLIP, 1)[..., None, None, None] < 0.5, support.flip(-1), support)
    if channels == 3:
        values = values + (draw_per_item(BRIGHTNESS) - 0.5)
        values = torch.lerp(values.mean(2, keepdim=True), values, 2 * draw_per_item(SATURATION))
        values = torch.lerp(values.mean((2, 3, 4), keepdim=True), values, draw_per_item(CONTRAST) + 0.5)
    values = _shift(values, -2, draw(DOWN, count), round(SHIFT * height))
    values = _shift(values, -1, draw(RIGHT, count), round(SHIFT * width))
    return torch.where(draw(COIN, 1)[..., None, None, None] < probability, values, support)


def _shift(values: Tensor, axis: int, share: Tensor, largest: int) -> Tensor:
    """Shift each item along an axis by -largest to largest positions, padded with zeros."""
    length = values.shape[axis]
    offset = (share * (2 * largest + 1)).long() - largest
    source = torch.arange(length, device=values.device) - offset[..., None]  # [B, n, length]
    inside = (source >= 0) & (source < length)
    shape = (*source.shape[:2], 1, *((length, 1) if axis == -2 else (1, length)))
    index = source.clamp(0, length - 1).view(shape)
    return values.gather(axis, index.expand_as(values)) * inside.view(shape)
