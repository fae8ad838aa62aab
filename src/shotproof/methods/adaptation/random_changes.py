"""Random changes of the support within a task, drawn by the task's seed and the step."""

from __future__ import annotations

import torch
from torch import Tensor

from shotproof.methods.shared import task_draws

COIN, FLIP, BRIGHTNESS, SATURATION, CONTRAST, DOWN, RIGHT = range(7)  # what a number is drawn for
SHIFT = 0.125  # the largest, as a share of a side


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
