"""Random changes of items in training, a whole batch at a time on its device, by an explicit generator."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.nn import functional

from shotproof.core.options import Component, option
from shotproof.core.registry import Registry
from shotproof.models.preprocessing import Medium, Preprocessing, center_crop, constant

GRAY = (0.299, 0.587, 0.114)
# Red, green, blue to brightness and two axes of color (YIQ), in which a hue is an angle.
COLOR_AXES = (GRAY, (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


class Augmentation(Component, ABC):
    """A random change of each item of a batch; a subclass is a frozen dataclass of its options."""

    kind: ClassVar[str] = "augmentation"
    medium: ClassVar[Medium | None] = None  # what it is for; None: anything

    @abstractmethod
    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Kept items [b, channels, height, width] to changed ones of `size`, in the same units, bytes or decibels."""

    def __call__(self, stored: Tensor, preprocessing: Preprocessing, generator: Generator) -> Tensor:
        """What is kept, [b, height, width, channels], as a network's input."""
        values = self.apply(stored.permute(0, 3, 1, 2), preprocessing.shape[1:], generator)
        return preprocessing.normalized(values)


@dataclass(frozen=True)
class NoAugmentation(Augmentation):
    """The center of every item, as in evaluation."""

    about = "the center of every item, as in evaluation"

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """The center."""
        return center_crop(values, size)


@dataclass(frozen=True)
class RandomCrop(Augmentation):
    """A random place of the network's size, flipped or not, with random brightness, contrast and saturation."""

    about = "images: random crops of the network's size, flips, color jitter"
    medium = "image"

    flip: bool = option(True, "whether every other image is flipped left to right")
    jitter: float = option(0.4, "by which share brightness, contrast and saturation change at most", least=0, most=1)

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Crops, flips, colors."""
        return _colored(_flipped(_cropped(values, size, generator), self.flip, generator), self.jitter, generator)


@dataclass(frozen=True)
class RandomResizedCrop(Augmentation):
    """A random part, of at least `area` of the image and a shape from 3:4 to 4:3, resized to the network's size."""

    about = "images: random parts resized to the network's size, flips, color jitter"
    medium = "image"
    example = "resized-crop(area=0.35)"

    area: float = option(0.35, "the least share of the image", above=0, most=1)
    flip: bool = option(True, "whether every other image is flipped left to right")
    jitter: float = option(0.4, "by which share brightness, contrast and saturation change at most", least=0, most=1)
    hue: float = option(0.0, "by which share of the circle of colors hues turn at most", least=0, most=0.5)
    gray: float = option(0.0, "share of the images that become gray", least=0, most=1)

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Parts, flips, colors."""
        count = len(values)
        area = self.area + (1 - self.area) * _uniform(count, values, generator)
        shape = torch.exp(2 * (_uniform(count, values, generator) - 0.5) * math.log(4 / 3))
        wide, high = ((area * one).sqrt().clamp(max=1) for one in (shape, 1 / shape))
        left, top = (2 * (_uniform(count, values, generator) - 0.5) * (1 - side) for side in (wide, high))
        if self.flip:
            wide = torch.where(_uniform(count, values, generator) < 0.5, -wide, wide)
        zero = torch.zeros_like(wide)
        affine = torch.stack([torch.stack([wide, zero, left], 1), torch.stack([zero, high, top], 1)], 1)
        grid = functional.affine_grid(affine, [count, values.shape[1], *size], align_corners=False)
        parts = functional.grid_sample(values.float(), grid, padding_mode="reflection", align_corners=False)
        colored = _turned_hues(_colored(parts, self.jitter, generator), self.hue, generator)
        return _grayed(colored, self.gray, generator)


@dataclass(frozen=True)
class SpecAugment(Augmentation):
    """Bands and frames of spectrograms masked with the item's mean, and a random shift in time."""

    about = "sounds: masked bands and frames, a random shift in time"
    medium = "sound"
    paper = "Park et al., SpecAugment: A Simple Data Augmentation Method for Automatic Speech Recognition, 2019"

    masks: int = option(2, "masks along each axis", least=0)
    bands: int = option(16, "bands that a mask covers at most", least=0)
    frames: int = option(24, "frames that a mask covers at most", least=0)
    shift: bool = option(True, "whether sounds are rotated in time")

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Rotates and masks."""
        values = values.float()
        count, _, _, frames = values.shape
        if self.shift:
            start = (_uniform(count, values, generator) * frames).long()
            index = (torch.arange(frames, device=values.device) + start[:, None]) % frames
            values = values.gather(3, index[:, None, None, :].expand_as(values))
        mean = values.mean(dim=(1, 2, 3), keepdim=True)
        for _ in range(self.masks):
            for axis, most in ((2, self.bands), (3, self.frames)):
                length = values.shape[axis]
                width = _uniform(count, values, generator) * min(most, length)
                first = _uniform(count, values, generator) * (length - width)
                place = torch.arange(length, device=values.device)
                hidden = (place >= first[:, None]) & (place < (first + width)[:, None])
                values = torch.where(hidden.view(count, 1, *((-1, 1) if axis == 2 else (1, -1))), mean, values)
        return values


augmentations: Registry[Augmentation] = Registry(
    "augmentation",
    {
        "none": "shotproof.models.augment:NoAugmentation",
        "crop": "shotproof.models.augment:RandomCrop",
        "resized-crop": "shotproof.models.augment:RandomResizedCrop",
        "spec-augment": "shotproof.models.augment:SpecAugment",
    },
)


def _uniform(count: int, like: Tensor, generator: Generator) -> Tensor:
    return torch.rand(count, device=like.device, generator=generator)


def _cropped(values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
    """A random place of each, all in one gather."""
    count, _, height, width = values.shape
    top, left = (
        (_uniform(count, values, generator) * (have - want + 1)).long()
        for have, want in zip((height, width), size, strict=True)
    )
    rows, columns = (
        first[:, None] + torch.arange(length, device=values.device)
        for first, length in zip((top, left), size, strict=True)
    )
    items = torch.arange(count, device=values.device)
    # Channels go last in the gather, which is how items are kept, and how networks on a GPU like them best.
    picked = values.permute(0, 2, 3, 1)[items[:, None, None], rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2)


def _flipped(values: Tensor, flip: bool, generator: Generator) -> Tensor:
    if not flip:
        return values
    chosen = _uniform(len(values), values, generator) < 0.5
    return torch.where(chosen.view(-1, 1, 1, 1), values.flip(3), values)


def _colored(values: Tensor, jitter: float, generator: Generator) -> Tensor:
    """Brightness, contrast, saturation, each by a factor of its own for each image; values from 0 to 255."""
    if not jitter:
        return values

    def factor() -> Tensor:
        return (1 + jitter * (2 * _uniform(len(values), values, generator) - 1)).view(-1, 1, 1, 1)

    weights = constant(GRAY, values.device).view(1, 3, 1, 1)
    bright = (values.float() * factor()).clamp(0, 255)
    mean = (bright * weights).sum(1, keepdim=True).mean(dim=(2, 3), keepdim=True)
    contrasted = torch.lerp(mean, bright, factor()).clamp(0, 255)
    gray = (contrasted * weights).sum(1, keepdim=True)
    return torch.lerp(gray, contrasted, factor()).clamp(0, 255)


def _turned_hues(values: Tensor, hue: float, generator: Generator) -> Tensor:
    """Colors turned about the gray axis, by an angle of its own for each image; values from 0 to 255."""
    if not hue:
        return values
    angle = 2 * math.pi * hue * (2 * _uniform(len(values), values, generator) - 1)
    turn = torch.zeros(len(values), 3, 3, device=values.device)
    turn[:, 0, 0] = 1
    turn[:, 1, 1] = turn[:, 2, 2] = angle.cos()
    turn[:, 1, 2], turn[:, 2, 1] = -angle.sin(), angle.sin()
    axes = torch.tensor(COLOR_AXES, device=values.device)
    matrix = torch.linalg.inv(axes) @ turn @ axes
    return torch.einsum("bij,bjhw->bihw", matrix, values.float()).clamp(0, 255)


def _grayed(values: Tensor, share: float, generator: Generator) -> Tensor:
    """Some of the images without color."""
    if not share:
        return values
    weights = constant(GRAY, values.device).view(1, 3, 1, 1)
    chosen = _uniform(len(values), values, generator) < share
    return torch.where(chosen.view(-1, 1, 1, 1), (values * weights).sum(1, keepdim=True), values)
