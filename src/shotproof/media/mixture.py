"""Mixtures: a foreground and a background as one sound (SpurAudio, Eq. 1), from files or made on the fly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from shotproof.core.storage.files import find
from shotproof.core.storage.places import Found
from shotproof.media.clip import Samples, Short, UnwrittenClip, read_clip

MARGIN_DB = 8.0
FULL_SCALE = 2**15
PEAK = (FULL_SCALE - 1) / FULL_SCALE  # the largest positive value that 16 bits hold
CLIPS_KEPT = 512  # decoded clips of 5 s at 16 kHz that a process keeps: 160 MB at most

Pcm = npt.NDArray[np.int16]
Peak = Literal["clipping", "always"]
"""Which sums are brought to full scale: those that would clip, or all."""


def background_gain_db(
    foreground_lufs: float, background_lufs: float, margin_db: float = MARGIN_DB, dial: float = 1.0
) -> float:
    """What the background is amplified by; minus infinity at a dial of 0.

    Rounded, so that machines whose loudness differs in the last bit make the same samples.
    """
    if dial == 0:
        return -math.inf
    return round(foreground_lufs - background_lufs - margin_db + 20 * math.log10(dial), 4)


def amplified(samples: Samples, gain_db: float) -> Samples:
    """Return the samples, [n], times the gain."""
    return samples * np.float32(10 ** (gain_db / 20))


def mix_clips(foreground: Samples, background: Samples | None, peak: Peak = "clipping") -> tuple[Pcm, float]:
    """Return the sum of a foreground and an amplified background, [n] each, in 16 bits, and what it was scaled by.

    The scale is 1 unless the sum would clip; then, or `always`, its highest peak is brought to full scale.
    """
    mixture = foreground if background is None else foreground + background
    highest = float(np.abs(mixture).max())
    scale = PEAK / highest if highest else 1.0
    scale = scale if peak == "always" else min(1.0, scale)
    return np.rint(mixture * np.float32(scale * FULL_SCALE)).clip(-FULL_SCALE, FULL_SCALE - 1).astype(np.int16), scale


def from_pcm(samples: Pcm) -> Samples:
    """16-bit values as a sound file gives them back, full scale at 1."""
    return samples.astype(np.float32) / np.float32(FULL_SCALE)


@dataclass(frozen=True)
class Mixture(UnwrittenClip):
    """A foreground with a background amplified by so many decibels; without one, the foreground alone."""

    foreground: Path
    background: Path | None
    gain_db: float
    peak: Peak = "clipping"
    short: Short = "repeat"

    def parts(self) -> tuple[Samples, Samples | None]:
        """Return the foreground and the amplified background, [n] each."""
        background = None if self.background is None else amplified(_clip(self.background, self.short), self.gain_db)
        return _clip(self.foreground, self.short), background

    def samples(self) -> Samples:
        """Return the mixture, [n], bit for bit what would be read from its file."""
        return from_pcm(mix_clips(*self.parts(), self.peak)[0])

    @property
    def files(self) -> list[Path]:
        """Return the files that it is made of."""
        return [self.foreground, *([] if self.background is None else [self.background])]


Clip = Path | Mixture


def _clip(path: Path, short: Short) -> Samples:
    """Return a recording as a clip; decoded anew where its file has changed."""
    try:
        found = find(path)
    except (OSError, ValueError):
        return read_clip(path)  # which says what is wrong
    return _decoded(path, short, found)


@lru_cache(maxsize=CLIPS_KEPT)
def _decoded(path: Path, short: Short, found: Found) -> Samples:
    return read_clip(path, short=short)
