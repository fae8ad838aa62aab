"""Every registered change with each of its styles, and items to change."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from shotproof.changes.change import Change, ImageChange, Pixels, SoundChange, changes
from shotproof.changes.item_draws import ItemDraws
from shotproof.media.clip import RATE, Samples
from tests.drawn_clips import tone

SEVERITIES = range(1, 6)


def spellings(base: type[Change]) -> list[str]:
    """Each change of a kind in each of its styles, e.g. `blur(style='zoom')`."""
    spelled = []
    for name in changes:
        if issubclass(changes.get(name), base):
            styles = [option.choices for option in changes.get(name).options() if option.name == "style"]
            spelled += [f"{name}(style='{style}')" for style in styles[0]] if styles else [name]
    return spelled


IMAGE_CHANGES, SOUND_CHANGES = spellings(ImageChange), spellings(SoundChange)


def apply(spelling: str, severity: int, item: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The item, changed."""
    change: Any = changes.make(spelling, severity=severity)
    changed: npt.NDArray[Any] = change.apply(item, ItemDraws(item, change.name))
    return changed


@functools.cache
def smooth(height: int, width: int, seed: int = 0) -> Pixels:
    """Soft blobs of all colors, whose values cover the range."""
    noise = gaussian_filter(np.random.default_rng(seed).normal(size=(height, width, 3)), (height / 12, width / 12, 0))
    low, high = noise.min(), noise.max()
    return np.rint(15 + 225 * (noise - low) / (high - low)).astype(np.uint8)


def noisy(height: int, width: int, seed: int = 0) -> Pixels:
    """Random pixels."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


IMAGES: dict[str, Callable[[], Pixels]] = {
    "smallest": lambda: noisy(1, 1),
    "small": lambda: noisy(8, 5),
    "line": lambda: noisy(2, 31),
    "odd": lambda: smooth(37, 51),
    "noisy": lambda: noisy(40, 32),
    "white": lambda: np.full((16, 24, 3), 255, np.uint8),
    "black": lambda: np.zeros((24, 16, 3), np.uint8),
}


def voice(seed: int = 0, seconds: float = 1.0) -> Samples:
    """A tone that is there half of the time."""
    samples = tone(seed, seconds)
    samples[np.arange(len(samples)) % (RATE // 2) > RATE // 4] *= 0.02
    return samples


SOUNDS: dict[str, Callable[[], Samples]] = {
    "voice": voice,
    "silence": lambda: np.zeros(4000, np.float32),
    "nothing": lambda: np.zeros(0, np.float32),
    "sample": lambda: np.ones(1, np.float32),
    "short": lambda: tone(1, 0.001),
    "odd": lambda: tone(2, 0.10007),
    "click": lambda: np.pad(np.full(1, -0.9, np.float32), (300, 2000)),
    "loud": lambda: np.where(tone(3) > 0, 1, -1).astype(np.float32),
}


def digest_of_all() -> str:
    """Digest of what every change makes of an image or a sound."""
    hasher = hashlib.sha256()
    for spelling in IMAGE_CHANGES:
        hasher.update(apply(spelling, 3, noisy(12, 9)).tobytes())
    for spelling in SOUND_CHANGES:
        hasher.update(apply(spelling, 3, voice(0, 0.1)).tobytes())
    return hasher.hexdigest()
