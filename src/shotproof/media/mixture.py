"""Mixtures of a foreground and a background (SpurAudio, Eq. 1), from files or mixed when they are read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from shotproof.core.storage.files import find
from shotproof.core.storage.places import FileInfo
from shotproof.media.clip import Samples, Short, UnwrittenClip, read_clip

MARGIN_DB = 8.0
FULL_SCALE = 2**15
PEAK = (FULL_SCALE - 1) / FULL_SCALE  # the largest positive value of 16 bits
MOST_CACHED_CLIPS = 512  # decoded clips of 5 s at 16 kHz in the cache of a process: 160 MB at most

Pcm = npt.NDArray[np.int16]
Peak = Literal["clipping", "always"]
"""Sums that are scaled to a full-scale peak: those that would clip, or all."""


def background_gain_db(
    foreground_lufs: float, background_lufs: float, margin_db: float = MARGIN_DB, dial: float = 1.0
) -> float:
    """Return the gain of the background; minus infinity at a dial of 0.

    The gain is rounded, so that machines whose loudness differs in the last bit produce the same samples.
    """
    if dial == 0:
        return -math.inf
    return round(foreground_lufs - background_lufs - margin_db + 20 * math.log10(dial), 4)


def amplified(samples: Samples, gain_db: float) -> Samples:
    """Multiply samples, [n], by a gain."""
    return samples * np.float32(10 ** (gain_db / 20))


def mix_clips(foreground: Samples, background: Samples | None, peak: Peak = "clipping") -> tuple[Pcm, float]:
    """Add a foreground and an amplified background, [n] each; return the sum in 16 bits, and its scale.

    The scale is 1 unless the sum would clip; then, or with `always`, its highest peak is scaled to full scale.
    """
    mixture = foreground if background is None else foreground + background
    highest = float(np.abs(mixture).max(initial=0))
    scale = PEAK / highest if highest else 1.0
    scale = scale if peak == "always" else min(1.0, scale)
    return np.rint(mixture * np.float32(scale * FULL_SCALE)).clip(-FULL_SCALE, FULL_SCALE - 1).astype(np.int16), scale


def from_pcm(samples: Pcm) -> Samples:
    """Convert 16-bit values to floats with full scale at 1, as a decoder of sound files does."""
    return samples.astype(np.float32) / np.float32(FULL_SCALE)


@dataclass(frozen=True)
class Mixture(UnwrittenClip):
    """Foreground, and optionally a background that is amplified by a gain in decibels."""

    foreground: Path
    background: Path | None
    gain_db: float
    peak: Peak = "clipping"
    short: Short = "repeat"

    def parts(self) -> tuple[Samples, Samples | None]:
        """Return the foreground and the amplified background, [n] each."""
        background = (
            None if self.background is None else amplified(_read_part(self.background, self.short), self.gain_db)
        )
        return _read_part(self.foreground, self.short), background

    def samples(self) -> Samples:
        """Return the mixture, [n], bit for bit what would be read from its file."""
        return from_pcm(mix_clips(*self.parts(), self.peak)[0])

    @property
    def files(self) -> list[Path]:
        """Return the files that it is made of."""
        return [self.foreground, *([] if self.background is None else [self.background])]

    def digest(self, parts: Sequence[str]) -> str:
        """Return a digest of the content, given those of the files."""
        manner = [name for name in (self.peak, self.short) if name not in ("clipping", "repeat")]
        recipe = "\0".join(["mixture", *parts, repr(self.gain_db), *manner])
        return hashlib.sha256(recipe.encode()).hexdigest()


def _read_part(path: Path, short: Short) -> Samples:
    """Read a recording as a clip, from the cache unless its file has changed."""
    try:
        file_info = find(path)
    except (OSError, ValueError):
        return read_clip(path)  # raises the appropriate error
    return _read_cached(path, short, file_info)


@lru_cache(maxsize=MOST_CACHED_CLIPS)
def _read_cached(path: Path, short: Short, file_info: FileInfo) -> Samples:
    return read_clip(path, short=short)
