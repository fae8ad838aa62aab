"""Optimizers on the weights of many tasks at once, and what the losses of adaptations share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn import functional

from shotproof.functional import task_draws
from shotproof.models.inner_loop import Viewed, Weights, over_tasks

if TYPE_CHECKING:
    from shotproof.learners.adaptation.adaptation import DecodedTasks
    from shotproof.models.network import FewShotNetwork

SCALE = 10.0  # of cosines, as logits
Loss = Callable[..., Tensor]  # of the weights of one task and its inputs: a scalar
COIN, FLIP, BRIGHTNESS, SATURATION, CONTRAST, DOWN, RIGHT = range(7)  # what a number is drawn for
SHIFT = 0.125  # the largest, as a share of a side


def stacked(net: FewShotNetwork, tasks: int, chosen: Callable[[str], bool]) -> Weights:
    """The parameters of these names, once for each task: [tasks, ...]."""
    return {
        name: each.detach().expand(tasks, *each.shape).clone() for name, each in net.named_parameters() if chosen(name)
    }


def descend(
    net: FewShotNetwork,
    loss: Loss,
    weights: Weights,
    optimizer: torch.optim.Optimizer,
    inputs: Iterable[Sequence[Tensor]],
    decayed_over: int | None = None,
) -> None:
    """One step in place for each of the inputs, whose tensors, like the weights, have a leading axis of tasks.

    PyTorch's optimizers treat each number by itself, and gradients are of each task's own loss: so one on stacked
    weights is as many independent ones.

    Args:
        net: the network that the loss calls
        loss: of one task
        weights: what moves
        optimizer: of these weights
        inputs: of each step, what the loss takes after the weights
        decayed_over: learning rates fall to zero over so many steps, by a cosine; None: they stay
    """
    slopes = over_tasks(net, grad(loss))
    rates = [group["lr"] for group in optimizer.param_groups]
    for step, given in enumerate(inputs):
        gradients = slopes(weights, *given)
        for name, each in weights.items():
            each.grad = gradients[name]
        if decayed_over:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * (1 + math.cos(math.pi * step / decayed_over)) / 2
        optimizer.step()
    for each in weights.values():
        each.grad = None


def cosine_logits(support: Tensor, target: Tensor, query: Tensor) -> Tensor:
    """Cosines of queries [m, d] with the class means of support [n, d], by one-hot classes [n, way], times 10.

    As `cosine_scores`, of one task.
    """
    means = target.T @ support / target.sum(0).clamp(min=1)[:, None]
    return SCALE * functional.normalize(query, dim=1) @ functional.normalize(means, dim=1).T


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """The mean cross-entropy of logits [n, way] under one-hot classes."""
    return -(target * logits.log_softmax(1)).sum(1).mean()


def prototype_loss(call: Callable[[Weights, Tensor], Tensor]) -> Loss:
    """The cross-entropy of a task's changed support under the class means of the support as it is.

    Args:
        call: items [n, channels, height, width] under a task's weights to vectors [n, d]
    """

    def loss(weights: Weights, support: Tensor, target: Tensor, changed: Tensor) -> Tensor:
        both = call(weights, torch.cat([support, changed]))
        count = len(support)
        return cross_entropy(cosine_logits(both[:count], target, both[count:]), target)

    return loss


def support_loss(call: Callable[[Weights, Tensor], Tensor]) -> Loss:
    """The cross-entropy of a task's support under its own class means."""

    def loss(weights: Weights, support: Tensor, target: Tensor) -> Tensor:
        vectors = call(weights, support)
        return cross_entropy(cosine_logits(vectors, target, vectors), target)

    return loss


def prototype_scores(
    net: FewShotNetwork, call: Callable[[Weights, Tensor], Tensor], weights: Weights, tasks: DecodedTasks
) -> Tensor:
    """The cosines of queries with class means under each task's weights, [B, m, way]."""

    def one(own: Weights, support: Tensor, target: Tensor, query: Tensor) -> Tensor:
        return cosine_logits(call(own, support), target, call(own, query))

    scores: Tensor = over_tasks(net, one)(weights, tasks.support, tasks.target, tasks.query)
    return scores


def frozen_scores(net: FewShotNetwork, tasks: DecodedTasks) -> Tensor:
    """The cosines of queries with class means under the network as it is, [B, m, way]."""
    scores: Tensor = vmap(cosine_logits)(net(tasks.support), tasks.target, net(tasks.query))
    return scores


def vectors_of(net: FewShotNetwork) -> Callable[[Weights, Tensor], Tensor]:
    """Items to vectors, under weights by their names in the network."""
    return adapting_view(net).call


def adapting_view(net: FewShotNetwork, logits: bool = False) -> Viewed:
    """The network as adaptations differentiate it: in float32 where tasks take their steps together.

    Under `vmap` PyTorch's batch norm has no gradient in bfloat16.
    """
    return Viewed(net, logits, precise=net.backbone.steps_together)


def changed(support: Tensor, seeds: Tensor, step: int, probability: float) -> Tensor:
    """Support items [B, n, channels, height, width] changed as P>M>F does it, in units of the network's input.

    One coin for each task decides whether anything changes; then all of its items are flipped left to right or not,
    and each by itself is moved, with zeros behind it. Images change in brightness, saturation and contrast too.
    """
    count, channels, (height, width) = support.shape[1], support.shape[2], support.shape[3:]

    def drawn(purpose: int, items: int) -> Tensor:
        number = torch.arange(items, device=seeds.device)
        own = (torch.full_like(seeds, one)[:, None] for one in (purpose, step))
        return task_draws.uniform(task_draws.bits(seeds[:, None], *own, number)).float()

    def of_each(purpose: int) -> Tensor:
        return drawn(purpose, count)[..., None, None, None]

    values = torch.where(drawn(FLIP, 1)[..., None, None, None] < 0.5, support.flip(-1), support)
    if channels == 3:
        values = values + (of_each(BRIGHTNESS) - 0.5)
        values = torch.lerp(values.mean(2, keepdim=True), values, 2 * of_each(SATURATION))
        values = torch.lerp(values.mean((2, 3, 4), keepdim=True), values, of_each(CONTRAST) + 0.5)
    values = _moved(values, -2, drawn(DOWN, count), round(SHIFT * height))
    values = _moved(values, -1, drawn(RIGHT, count), round(SHIFT * width))
    return torch.where(drawn(COIN, 1)[..., None, None, None] < probability, values, support)


def _moved(values: Tensor, axis: int, share: Tensor, most: int) -> Tensor:
    """Each item moved along an axis by -most to most places, zeros behind it."""
    length = values.shape[axis]
    by = (share * (2 * most + 1)).long() - most
    place = torch.arange(length, device=values.device) - by[..., None]  # [B, n, length]
    inside = (place >= 0) & (place < length)
    shape = (*place.shape[:2], 1, *((length, 1) if axis == -2 else (1, length)))
    index = place.clamp(0, length - 1).view(shape)
    return values.gather(axis, index.expand_as(values)) * inside.view(shape)
