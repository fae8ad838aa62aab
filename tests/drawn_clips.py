"""Sound files that tests synthesise for themselves, with their catalog."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from shotproof.catalog.catalog import Catalog
from tests.drawn_images import catalog_of


def tone(seed: int, seconds: float = 0.5, rate: int = 16_000) -> npt.NDArray[np.float32]:
    """A tone of its own pitch in a little noise, [n]."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    return (0.3 * np.sin(2 * np.pi * 200 * (seed + 1) * time) + 0.05 * rng.standard_normal(len(time))).astype("f4")


def draw_clips(folder: Path, count: int, seconds: float = 0.5, rate: int = 16_000) -> Catalog:
    """So many clips in a folder, numbered, written long ago, so that their digests are remembered."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number:03d}.wav" for number in range(count)]
    for number, name in enumerate(names):
        soundfile.write(folder / name, tone(number, seconds, rate), rate, subtype="FLOAT")
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    return catalog_of(folder, names)
