"""Random augmentations of training items, applied to whole batches on the device with an explicit generator."""

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
# RGB to YIQ: brightness and two color axes, in which a hue is an angle.
COLOR_AXES = (GRAY, (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


class Augmentation(Component, ABC):
    """Random augmentation of each item in a batch; subclasses are frozen dataclasses of their options."""

    kind: ClassVar[str] = "augmentation"
    medium: ClassVar[Medium | None] = None  # the medium it applies to; None: any

    @abstractmethod
    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Augment stored items [b, channels, height, width] to `size`, in the same units (bytes or decibels)."""

    def __call__(self, stored: Tensor, preprocessing: Preprocessing, generator: Generator) -> Tensor:
        """Augment stored items [b, height, width, channels] and normalize them for the network."""
        values = self.apply(stored.permute(0, 3, 1, 2), preprocessing.shape[1:], generator)
        return preprocessing.normalized(values)


@dataclass(frozen=True)
class NoAugmentation(Augmentation):
    """Crop the center of every item, as in evaluation."""

    about = "center crop, as in evaluation"

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Crop the center."""
        return center_crop(values, size)


@dataclass(frozen=True)
class RandomCrop(Augmentation):
    """Crop and flip images at random, and jitter brightness, contrast and saturation."""

    about = "images: random crops of the network's size, flips, color jitter"
    medium = "image"

    flip: bool = option(True, "whether images are flipped left to right with probability 0.5")
    jitter: float = option(0.4, "largest relative change of brightness, contrast and saturation", least=0, most=1)

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Crop, flip and jitter the colors."""
        return _jitter_colors(
            _random_flip(_crop(values, size, generator), self.flip, generator), self.jitter, generator
        )


@dataclass(frozen=True)
class RandomResizedCrop(Augmentation):
    """Crop at least `area` of the image, with an aspect ratio from 3:4 to 4:3, and resize it to the network's size."""

    about = "images: random crops resized to the network's size, flips, color jitter"
    medium = "image"
    example = "resized-crop(area=0.35)"

    area: float = option(0.35, "smallest share of the image that a crop covers", above=0, most=1)
    flip: bool = option(True, "whether images are flipped left to right with probability 0.5")
    jitter: float = option(0.4, "largest relative change of brightness, contrast and saturation", least=0, most=1)
    hue: float = option(0.0, "largest rotation of hues, as a share of the color circle", least=0, most=0.5)
    gray: float = option(0.0, "share of the images converted to grayscale", least=0, most=1)

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Crop, resize, flip and change the colors."""
        count = len(values)
        area = self.area + (1 - self.area) * _uniform(count, values, generator)
        aspect = torch.exp(2 * (_uniform(count, values, generator) - 0.5) * math.log(4 / 3))
        width, height = ((area * ratio).sqrt().clamp(max=1) for ratio in (aspect, 1 / aspect))
        left, top = (2 * (_uniform(count, values, generator) - 0.5) * (1 - side) for side in (width, height))
        if self.flip:
            width = torch.where(_uniform(count, values, generator) < 0.5, -width, width)
        zero = torch.zeros_like(width)
        affine = torch.stack([torch.stack([width, zero, left], 1), torch.stack([zero, height, top], 1)], 1)
        grid = functional.affine_grid(affine, [count, values.shape[1], *size], align_corners=False)
        crops = functional.grid_sample(values.float(), grid, padding_mode="reflection", align_corners=False)
        colored = _rotate_hues(_jitter_colors(crops, self.jitter, generator), self.hue, generator)
        return _random_grayscale(colored, self.gray, generator)


@dataclass(frozen=True)
class SpecAugment(Augmentation):
    """Mask frequency bands and time frames of spectrograms with the item's mean, and shift them in time."""

    about = "sounds: masked frequency bands and time frames, a random shift in time"
    medium = "sound"
    paper = "Park et al., SpecAugment: A Simple Data Augmentation Method for Automatic Speech Recognition, 2019"

    masks: int = option(2, "number of masks along each axis", least=0)
    bands: int = option(16, "most bands that a mask covers", least=0)
    frames: int = option(24, "most frames that a mask covers", least=0)
    shift: bool = option(True, "whether sounds are shifted in time, wrapping around")

    def apply(self, values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
        """Shift in time and mask."""
        values = values.float()
        count, _, _, frames = values.shape
        if self.shift:
            start = (_uniform(count, values, generator) * frames).long()
            time_index = (torch.arange(frames, device=values.device) + start[:, None]) % frames
            values = values.gather(3, time_index[:, None, None, :].expand_as(values))
        mean = values.mean(dim=(1, 2, 3), keepdim=True)
        for _ in range(self.masks):
            for axis, max_width in ((2, self.bands), (3, self.frames)):
                length = values.shape[axis]
                width = _uniform(count, values, generator) * min(max_width, length)
                mask_start = _uniform(count, values, generator) * (length - width)
                position = torch.arange(length, device=values.device)
                masked = (position >= mask_start[:, None]) & (position < (mask_start + width)[:, None])
                values = torch.where(masked.view(count, 1, *((-1, 1) if axis == 2 else (1, -1))), mean, values)
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


def _uniform(count: int, values: Tensor, generator: Generator) -> Tensor:
    return torch.rand(count, device=values.device, generator=generator)


def _crop(values: Tensor, size: tuple[int, int], generator: Generator) -> Tensor:
    """Crop each item at a random position, all in one gather."""
    count, _, height, width = values.shape
    top, left = (
        (_uniform(count, values, generator) * (available - target + 1)).long()
        for available, target in zip((height, width), size, strict=True)
    )
    rows, columns = (
        start[:, None] + torch.arange(length, device=values.device)
        for start, length in zip((top, left), size, strict=True)
    )
    items = torch.arange(count, device=values.device)
    # Gather with channels last: items are stored this way, and GPU convolutions are fastest on it.
    crops = values.permute(0, 2, 3, 1)[items[:, None, None], rows[:, :, None], columns[:, None, :]]
    return crops.permute(0, 3, 1, 2)


def _random_flip(values: Tensor, flip: bool, generator: Generator) -> Tensor:
    if not flip:
        return values
    is_flipped = _uniform(len(values), values, generator) < 0.5
    return torch.where(is_flipped.view(-1, 1, 1, 1), values.flip(3), values)


def _jitter_colors(values: Tensor, jitter: float, generator: Generator) -> Tensor:
    """Scale brightness, contrast and saturation by random factors per image; values are 0 to 255."""
    if not jitter:
        return values

    def factor() -> Tensor:
        return (1 + jitter * (2 * _uniform(len(values), values, generator) - 1)).view(-1, 1, 1, 1)

    weights = constant(GRAY, values.device).view(1, 3, 1, 1)
    brightened = (values.float() * factor()).clamp(0, 255)
    mean = (brightened * weights).sum(1, keepdim=True).mean(dim=(2, 3), keepdim=True)
    contrasted = torch.lerp(mean, brightened, factor()).clamp(0, 255)
    gray = (contrasted * weights).sum(1, keepdim=True)
    return torch.lerp(gray, contrasted, factor()).clamp(0, 255)


def _rotate_hues(values: Tensor, hue: float, generator: Generator) -> Tensor:
    """Rotate colors about the gray axis by a random angle per image; values are 0 to 255."""
    if not hue:
        return values
    angle = 2 * math.pi * hue * (2 * _uniform(len(values), values, generator) - 1)
    rotation = torch.zeros(len(values), 3, 3, device=values.device)
    rotation[:, 0, 0] = 1
    rotation[:, 1, 1] = rotation[:, 2, 2] = angle.cos()
    rotation[:, 1, 2], rotation[:, 2, 1] = -angle.sin(), angle.sin()
    axes = torch.tensor(COLOR_AXES, device=values.device)
    matrix = torch.linalg.inv(axes) @ rotation @ axes
    return torch.einsum("bij,bjhw->bihw", matrix, values.float()).clamp(0, 255)


def _random_grayscale(values: Tensor, share: float, generator: Generator) -> Tensor:
    """Convert a random share of the images to grayscale."""
    if not share:
        return values
    weights = constant(GRAY, values.device).view(1, 3, 1, 1)
    is_gray = _uniform(len(values), values, generator) < share
    return torch.where(is_gray.view(-1, 1, 1, 1), (values * weights).sum(1, keepdim=True), values)
