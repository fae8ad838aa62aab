"""The items that a page shows: images as thumbnails, sounds as spectrograms that can be played; each embedded once."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.errors import UnreadableItem
from shotproof.images import open_image
from shotproof.sounds.clip import RATE, SOUND_EXTENSIONS, Samples, read_clip, soundfile_module
from shotproof.sounds.mixture import Clip, clips_of

# A page stays at 4 MB of images, or 7 MB of sounds.
MAX_IMAGES = 900
MAX_SOUNDS = 230
THUMBNAIL_SIDE = 96
JPEG_QUALITY = 72
# From silence to the loudest: dark to light through hues that differ in lightness, so that grey prints read as well.
SHADES = ((12, 8, 38), (79, 18, 123), (182, 54, 121), (251, 136, 97), (252, 253, 191))


@dataclass(frozen=True)
class Thumbnail:
    """An item in the page.

    image: its number among the embedded images, None where its file cannot be shown
    sound: its number among the embedded sounds, None where it is none
    about: what is known of it in a few words, e.g. `pig in rain`
    """

    item: str
    image: int | None
    sound: int | None
    about: str


@dataclass
class Album:
    """The images and sounds of a page: each distinct item is embedded once."""

    catalog: Catalog
    images: list[str] = field(default_factory=list)
    sounds: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    _shown: dict[str, Thumbnail] = field(default_factory=dict)

    def thumbnails(self, items: Sequence[str]) -> list[Thumbnail]:
        """The items as they are shown, embedded where they are new."""
        new = [item for item in dict.fromkeys(items) if item not in self._shown]
        rows = self.catalog.rows_of(pa.array(new, pa.string()), "tasks")
        for item, row in zip(new, rows, strict=True):
            self._shown[item] = self._embed(item, int(row))
        return [self._shown[item] for item in items]

    def has_room_for(self, items: Sequence[str]) -> bool:
        """Whether the page stays small with these."""
        return len({*self._shown, *items}) <= (MAX_SOUNDS if self._of_sounds else MAX_IMAGES)

    def _embed(self, item: str, row: int) -> Thumbnail:
        clip, sound = self._clips[row], None
        try:
            if _is_sound(clip):
                samples = read_clip(clip)
                image, sound = spectrogram(samples), len(self.sounds)
                self.sounds.append(playable(samples))
            else:
                image = thumbnail(self.catalog.paths[row])
        except UnreadableItem:
            self.unreadable.append(item)
            return Thumbnail(item, None, None, item)
        self.images.append(image)
        return Thumbnail(item, len(self.images) - 1, sound, self._about(row) or item)

    def _about(self, row: int) -> str | None:
        """The label and the context, where there is one."""
        if "context" not in self.catalog.table.column_names:
            return None
        label, context = (self.catalog.table.column(name)[row].as_py() for name in ("label", "context"))
        return f"{label} in {context}" if context else str(label)

    @cached_property
    def _clips(self) -> list[Clip]:
        return clips_of(self.catalog)

    @property
    def _of_sounds(self) -> bool:
        return bool(self._clips) and _is_sound(self._clips[0])


def thumbnail(path: Path) -> str:
    """A JPEG of at most 96 x 96 pixels as a data URI."""
    image = open_image(path)
    image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.LANCZOS)
    return _jpeg(image)


def spectrogram(samples: Samples) -> str:
    """The log-mel spectrogram of a clip [n], low frequencies at the bottom, as a data URI."""
    import torch

    from shotproof.sounds.spectrogram import log_mel

    level = log_mel(torch.from_numpy(samples)[None])[0].numpy()
    share = (level - level.min()) / max(float(np.ptp(level)), 1e-9)
    steps = np.linspace(0, 1, len(SHADES))
    shades = np.array(SHADES, dtype=np.float64)
    colours = np.stack([np.interp(share[::-1], steps, shades[:, channel]) for channel in range(3)], axis=-1)
    image = Image.fromarray(colours.round().astype(np.uint8))
    return _jpeg(image.resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.LANCZOS))


def playable(samples: Samples) -> str:
    """A clip [n] as a data URI that every browser plays: 25 kB for 5 seconds."""
    encoded = io.BytesIO()
    soundfile_module().write(encoded, samples, RATE, format="MP3", subtype="MPEG_LAYER_III", compression_level=0.5)
    return "data:audio/mpeg;base64," + base64.b64encode(encoded.getvalue()).decode()


def _is_sound(clip: Clip) -> bool:
    return not isinstance(clip, Path) or clip.suffix.lower().removeprefix(".") in SOUND_EXTENSIONS


def _jpeg(image: Image.Image) -> str:
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(encoded.getvalue()).decode()
