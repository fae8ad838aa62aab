"""Preprocessing: the stored form of each file, and the network's input computed from it."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from shotproof.core.errors import InputError, UnknownName
from shotproof.core.options import Checked, option
from shotproof.media.clip import SECONDS, read_clip
from shotproof.media.images import REDUCED, open_image
from shotproof.media.spectrogram import LogMel, log_mel

Medium = Literal["image", "sound"]
SIZE = 84
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
FIT = ("crop", "stretch")
RESAMPLINGS = {method.name.lower(): method for method in (Image.Resampling.BICUBIC, Image.Resampling.BILINEAR)}


class Preprocessing(Checked, ABC):
    """Preprocessing of a file: stored as [height, width, channels], then converted to [b, channels, height, width].

    medium: kind of the items
    stored_type: dtype of the stored form
    """

    medium: Medium
    stored_type: ClassVar[type[np.generic]]

    @property
    @abstractmethod
    def stored_shape(self) -> tuple[int, int, int]:
        """Return height, width and channels of the stored form of each file."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """Return channels, height and width of the network's input."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return everything the stored form depends on besides the file's content."""

    @abstractmethod
    def load(self, file: Any) -> npt.NDArray[Any]:
        """Load the stored form of one file; runs in worker processes."""

    @abstractmethod
    def normalized(self, values: Tensor) -> Tensor:
        """Normalize stored values [b, channels, ...] for the network, in float32."""

    def prepared(self, stored: Tensor) -> Tensor:
        """Convert stored items [b, height, width, channels] to input, without augmentation."""
        return self.normalized(center_crop(stored.permute(0, 3, 1, 2), self.shape[1:]))

    def fitted(self, stored: npt.NDArray[Any]) -> Preprocessing:
        """Return a copy with the mean and standard deviation of the training data, if the preprocessing uses them."""
        return self

    def to_meta(self) -> dict[str, Any]:
        """Return plain values for a model's record."""
        return {"medium": self.medium, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class ImagePreprocessing(Preprocessing):
    """Preprocess images: `stored` x `stored` pixels are stored, of which the network sees `size` x `size`.

    With `fit` crop the shorter side is resized and the center cropped; stretch resizes both sides. Values from 0 to 1
    become (x - mean) / std.
    """

    medium = "image"
    stored_type = np.uint8

    size: int = option(SIZE, "a side of the network's input, in pixels", least=8)
    stored: int = option(96, "a side of the images that are kept, in pixels", least=8)
    fit: str = option("crop", "whether the longer side is cropped, or both sides are resized", choices=FIT)
    resample: str = option("bicubic", "how images are resized", choices=tuple(RESAMPLINGS))
    mean: tuple[float, float, float] = option(MEAN, "per channel, of values from 0 to 1")
    std: tuple[float, float, float] = option(STD, "per channel", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stored < self.size:
            raise InputError(f"images of {self.stored} pixels a side are kept, fewer than the network's {self.size}")

    @classmethod
    def of_size(cls, size: int) -> ImagePreprocessing:
        """Return the preprocessing for input of `size` pixels a side, with a margin of a seventh for random crops."""
        return cls().resized(size)

    def resized(self, size: int) -> ImagePreprocessing:
        """Return a copy for input of `size` pixels a side, with the margin in proportion."""
        return replace(self, size=size, stored=round(size * self.stored / self.size))

    @property
    def stored_shape(self) -> tuple[int, int, int]:
        """Return height, width and channels of a stored image."""
        return self.stored, self.stored, 3

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return channels, height and width of the input."""
        return 3, self.size, self.size

    @property
    def fingerprint(self) -> str:
        """Return the stored size and how images are resized to it."""
        return f"image {REDUCED} {self.stored} {self.fit} {self.resample}"

    def load(self, file: Path) -> npt.NDArray[np.uint8]:
        """Load the image, [stored, stored, 3]."""
        image, side, resampling = open_image(file, side=self.stored), self.stored, RESAMPLINGS[self.resample]
        if self.fit == "stretch":
            return np.asarray(image.resize((side, side), resampling))
        # Resizing the central square alone is what resizing all of the image, then cropping, would give.
        shorter_side, (width, height) = min(image.size), image.size
        left, top = (width - shorter_side) / 2, (height - shorter_side) / 2
        box = (left, top, left + shorter_side, top + shorter_side)
        return np.asarray(image.resize((side, side), resampling, box=box))

    def normalized(self, values: Tensor) -> Tensor:
        """Normalize bytes, or numbers from 0 to 255."""
        mean, std = (constant(numbers, values.device).view(3, 1, 1) for numbers in (self.mean, self.std))
        return (values.float() / 255 - mean) / std


@dataclass(frozen=True)
class SoundPreprocessing(Preprocessing):
    """Preprocess sounds: log-mel spectrograms with one channel, bands by frames, (x - mean) / std of decibels.

    The defaults are SpurAudio's: 16 kHz, 5 s, windows of 1024 every 512 samples, 128 bands. Mean and standard deviation
    are those of the training data.
    """

    medium = "sound"
    stored_type = np.float16  # decibels need no more than half precision

    seconds: float = option(SECONDS, "length of the clips", above=0)
    rate: int = option(16_000, "samples per second", least=1)
    window: int = option(1024, "samples per window", least=1)
    hop: int = option(512, "samples from one window to the next", least=1)
    bands: int = option(128, "mel bands", least=8)
    mean: float = option(0.0, "of the decibels")
    std: float = option(1.0, "of the decibels", above=0)

    @property
    def stored_shape(self) -> tuple[int, int, int]:
        """Return bands, frames and one channel."""
        return self.bands, 1 + round(self.seconds * self.rate) // self.hop, 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return one channel, bands and frames."""
        return 1, *self.stored_shape[:2]

    @property
    def fingerprint(self) -> str:
        """Return the length of clips and the settings of the spectrogram."""
        return f"sound {self.seconds} {self._front_end}"

    def load(self, file: Any) -> npt.NDArray[np.float16]:
        """Compute the spectrogram in decibels, [bands, frames, 1]."""
        samples = torch.from_numpy(read_clip(file, self.rate, self.seconds))[None]
        levels: npt.NDArray[np.float16] = log_mel(samples, self._front_end)[0, :, :, None].half().numpy()
        return levels

    def normalized(self, values: Tensor) -> Tensor:
        """Normalize decibels."""
        return (values.float() - self.mean) / self.std

    def fitted(self, stored: npt.NDArray[Any]) -> SoundPreprocessing:
        """Return a copy with the mean and standard deviation of these spectrograms."""
        means = np.array([spectrogram.mean(dtype=np.float64) for spectrogram in stored])
        squares = np.array([np.square(spectrogram, dtype=np.float64).mean() for spectrogram in stored])
        std = float(np.sqrt(max(squares.mean() - means.mean() ** 2, 1e-12)))
        return replace(self, mean=float(means.mean()), std=std)

    @property
    def _front_end(self) -> LogMel:
        return LogMel(rate=self.rate, window=self.window, hop=self.hop, bands=self.bands)


_MEDIA: dict[str, type[Preprocessing]] = {"image": ImagePreprocessing, "sound": SoundPreprocessing}


def read_preprocessing(meta: Mapping[str, Any]) -> Preprocessing:
    """Read the preprocessing from a model's record. Raise InputError if the record has none."""
    medium = str(meta.get("medium"))
    if medium not in _MEDIA:
        raise UnknownName("medium", medium, _MEDIA)
    option_names = {option.name for option in _MEDIA[medium].options()}
    return _MEDIA[medium](**{key: value for key, value in meta.items() if key in option_names})


@functools.lru_cache(maxsize=64)
def constant(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """Return numbers as a cached tensor on a device: a new copy to a GPU would wait for its pending work."""
    return torch.tensor(numbers, device=device)


def center_crop(values: Tensor, size: tuple[int, int]) -> Tensor:
    """Crop the center of [..., height, width] to `size`."""
    top, left = ((available - target) // 2 for available, target in zip(values.shape[-2:], size, strict=True))
    return values[..., top : top + size[0], left : left + size[1]]
