"""Mixtures of a catalog: read from their files, or made on the fly from foreground, background and gain."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from shotproof.catalog.catalog import Catalog
from shotproof.features.cache import file_digests
from shotproof.sounds.clip import Samples, UnwrittenClip, read_clip
from shotproof.sounds.mixing import amplified, from_pcm, mix_clips

CLIPS_KEPT = 512  # decoded clips of 5 s at 16 kHz that a process keeps: 160 MB at most


@dataclass(frozen=True)
class Mixture(UnwrittenClip):
    """A foreground with a background amplified by so many decibels; without one, the foreground alone."""

    foreground: Path
    background: Path | None
    gain_db: float

    def parts(self) -> tuple[Samples, Samples | None]:
        """The foreground and the amplified background, [n] each."""
        background = None if self.background is None else amplified(_clip(self.background), self.gain_db)
        return _clip(self.foreground), background

    def samples(self) -> Samples:
        """The mixture, [n], bit for bit what would be read from its file."""
        return from_pcm(mix_clips(*self.parts())[0])

    @property
    def files(self) -> list[Path]:
        """The files that it is made of."""
        return [self.foreground, *([] if self.background is None else [self.background])]


Clip = Path | Mixture


def clips_of(catalog: Catalog) -> list[Clip]:
    """What `read_clip` takes for each item: its file, or, where its path is empty, the mixture that it stands for."""
    paths = catalog.table.column("path").to_pylist()
    if all(paths):
        return list(catalog.paths)
    rows = catalog.table.select(["foreground", "background", "gain_db"]).to_pylist()
    root = catalog.root
    return [
        root / path
        if path
        else Mixture(
            root / row["foreground"],
            None if row["background"] is None else root / row["background"],
            0.0 if row["gain_db"] is None else row["gain_db"],
        )
        for path, row in zip(paths, rows, strict=True)
    ]


def clip_digests(clips: Sequence[Clip], cache: Path | None) -> pa.Array:
    """A digest of the content of each clip, [n]: that of its file, or of all that a mixture is made of."""
    files = sorted({file for clip in clips for file in (clip.files if isinstance(clip, Mixture) else [clip])})
    digest_of = dict(zip(files, file_digests(files, cache).to_pylist(), strict=True))

    def digest(clip: Clip) -> str:
        if isinstance(clip, Path):
            return str(digest_of[clip])
        recipe = "\0".join(["mixture", *(digest_of[file] for file in clip.files), repr(clip.gain_db)])
        return hashlib.sha256(recipe.encode()).hexdigest()

    return pa.array([digest(clip) for clip in clips], pa.string())


def _clip(path: Path) -> Samples:
    """A recording as a clip; decoded anew where its file has changed."""
    try:
        status = path.stat()
    except OSError:
        return read_clip(path)  # which says what is wrong
    return _decoded(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=CLIPS_KEPT)
def _decoded(path: Path, changed: int, size: int) -> Samples:
    return read_clip(path)
