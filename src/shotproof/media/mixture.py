"""Mixtures of a catalog: read from their files, or made on the fly from foreground, background and gain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from shotproof.core.storage.files import find
from shotproof.core.storage.places import Found
from shotproof.media.clip import Samples, Short, UnwrittenClip, read_clip
from shotproof.media.mixing import Peak, amplified, from_pcm, mix_clips

CLIPS_KEPT = 512  # decoded clips of 5 s at 16 kHz that a process keeps: 160 MB at most


@dataclass(frozen=True)
class Mixture(UnwrittenClip):
    """A foreground with a background amplified by so many decibels; without one, the foreground alone."""

    foreground: Path
    background: Path | None
    gain_db: float
    peak: Peak = "clipping"
    short: Short = "repeat"

    def parts(self) -> tuple[Samples, Samples | None]:
        """The foreground and the amplified background, [n] each."""
        background = None if self.background is None else amplified(_clip(self.background, self.short), self.gain_db)
        return _clip(self.foreground, self.short), background

    def samples(self) -> Samples:
        """The mixture, [n], bit for bit what would be read from its file."""
        return from_pcm(mix_clips(*self.parts(), self.peak)[0])

    @property
    def files(self) -> list[Path]:
        """The files that it is made of."""
        return [self.foreground, *([] if self.background is None else [self.background])]


Clip = Path | Mixture


def _clip(path: Path, short: Short) -> Samples:
    """A recording as a clip; decoded anew where its file has changed."""
    try:
        found = find(path)
    except (OSError, ValueError):
        return read_clip(path)  # which says what is wrong
    return _decoded(path, short, found)


@lru_cache(maxsize=CLIPS_KEPT)
def _decoded(path: Path, short: Short, found: Found) -> Samples:
    return read_clip(path, short=short)
