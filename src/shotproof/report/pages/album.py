"""Album of the items on a page: images as thumbnails, sounds as spectrograms that can be played, each embedded once."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.catalog.item_files import item_files
from shotproof.core.errors import UnreadableItem
from shotproof.media.clip import RATE, Samples, is_sound, read_clip, soundfile_module
from shotproof.media.images import open_image
from shotproof.media.unwritten import ItemFile
from shotproof.report.pages.changed_thumbnails import change_at, change_words, plate_of

CONTEXT = "context"
# A page stays at 4 MB of images, or 7 MB of sounds.
MAX_IMAGES = 900
MAX_SOUNDS = 230
THUMBNAIL_SIDE = 96
JPEG_QUALITY = 72
# From silent to loud: lightness increases from dark to light, so that prints in gray are readable.
SHADES = ((12, 8, 38), (79, 18, 123), (182, 54, 121), (251, 136, 97), (252, 253, 191))


@dataclass(frozen=True)
class Thumbnail:
    """Item on a page.

    image: number among the embedded images; None if its file cannot be shown
    sound: number among the embedded sounds; None if it is not a sound
    about: short description, e.g. `pig in rain`
    context: context for the caption below it; None if it has none
    """

    item: str
    image: int | None
    sound: int | None
    about: str
    context: str | None = None


@dataclass
class Album:
    """Images and sounds of a page, from any number of catalogs: each distinct item is embedded once."""

    images: list[str] = field(default_factory=list)
    sounds: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    _thumbnails: dict[tuple[str, str], Thumbnail] = field(default_factory=dict)  # by the catalog's digest and the item
    _clips: dict[str, Sequence[ItemFile]] = field(default_factory=dict)  # by the catalog's digest

    def thumbnails(self, items: Sequence[str], catalog: Catalog, column: str = CONTEXT) -> list[Thumbnail]:
        """Embed the items that are new, and return the thumbnails of all.

        Args:
            items: items of the catalog
            catalog: catalog with their files
            column: column with their contexts, for the captions; a catalog without it has no captions
        """
        keys = [(catalog.digest, item) for item in items]
        new = [item for key, item in dict.fromkeys(keys) if (key, item) not in self._thumbnails]
        rows = catalog.rows_of(pa.array(new, pa.string()), "tasks")
        for item, row in zip(new, rows, strict=True):
            self._thumbnails[catalog.digest, item] = self._embed(item, int(row), catalog)
        rows = catalog.rows_of(pa.array(items, pa.string()), "tasks")
        return [
            _describe(self._thumbnails[key], catalog, int(row), column) for key, row in zip(keys, rows, strict=True)
        ]

    def has_room_for(self, items: Sequence[str], catalog: Catalog) -> bool:
        """Return whether the page stays small enough with these items."""
        clips = self._clips_of(catalog)
        are_sounds = bool(clips) and is_sound(clips[0])
        return len({*self._thumbnails, *((catalog.digest, item) for item in items)}) <= (
            MAX_SOUNDS if are_sounds else MAX_IMAGES
        )

    def _embed(self, item: str, row: int, catalog: Catalog) -> Thumbnail:
        clip, sound = self._clips_of(catalog)[row], None
        try:
            if is_sound(clip):
                samples = read_clip(clip)
                image, sound = spectrogram(samples), len(self.sounds)
                self.sounds.append(data_uri("audio/mpeg", playable(samples)))
            else:
                image = thumbnail(clip)
        except UnreadableItem:
            self.unreadable.append(item)
            return Thumbnail(item, None, None, item)
        self.images.append(data_uri("image/jpeg", image))
        return Thumbnail(item, len(self.images) - 1, sound, item)

    def _clips_of(self, catalog: Catalog) -> Sequence[ItemFile]:
        if catalog.digest not in self._clips:
            self._clips[catalog.digest] = item_files(catalog)
        return self._clips[catalog.digest]


def thumbnail(path: ItemFile, side: int = THUMBNAIL_SIDE) -> bytes:
    """Shrink an image to a JPEG of at most `side` x `side` pixels."""
    return jpeg(shrunk(path, side))


def shrunk(path: ItemFile, side: int = THUMBNAIL_SIDE) -> Image.Image:
    """Shrink an image to at most `side` x `side` pixels."""
    image = open_image(path, side=side)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image


def spectrogram(samples: Samples, side: int = THUMBNAIL_SIDE) -> bytes:
    """Draw the log-mel spectrogram of a clip [n], low frequencies at the bottom, as a `side` x `side` JPEG."""
    import torch

    from shotproof.media.spectrogram import log_mel

    level = log_mel(torch.from_numpy(samples)[None])[0].numpy()
    share = (level - level.min()) / max(float(np.ptp(level)), 1e-9)
    steps = np.linspace(0, 1, len(SHADES))
    shades = np.array(SHADES, dtype=np.float64)
    colors = np.stack([np.interp(share[::-1], steps, shades[:, channel]) for channel in range(3)], axis=-1)
    image = Image.fromarray(colors.round().astype(np.uint8))
    return jpeg(image.resize((side, side), Image.Resampling.LANCZOS))


def playable(samples: Samples) -> bytes:
    """Encode a clip [n] as an MP3 file: 25 kB for 5 seconds."""
    encoded = io.BytesIO()
    soundfile_module().write(encoded, samples, RATE, format="MP3", subtype="MPEG_LAYER_III", compression_level=0.5)
    return encoded.getvalue()


def _describe(item: Thumbnail, catalog: Catalog, row: int, column: str) -> Thumbnail:
    """Add the class's name and the context, if the catalog has a column of contexts, or what is changed."""
    spelling = change_at(catalog, row)
    if spelling is not None and item.image is not None:
        return _describe_change(item, catalog, row, spelling)
    if column not in catalog.table.column_names or item.image is None:
        return item
    name = catalog.class_names[catalog.table.column("label")[row].as_py()]
    value = catalog.table.column(column)[row].as_py()
    context = None if value in (None, "") else str(value)
    return replace(item, about=f"{name} in {context}" if context else name, context=context)


def _describe_change(item: Thumbnail, catalog: Catalog, row: int, spelling: str) -> Thumbnail:
    """Say what is changed in an item; the caption is the class whose background is shown."""
    labels = catalog.table.column("label")
    name, plate = catalog.class_names[labels[row].as_py()], plate_of(spelling)
    if plate is None:
        return replace(item, about=f"{name}, {change_words(spelling)}")
    (plate_row,) = catalog.rows_of(pa.array([plate]), "the changes")
    ground = catalog.class_names[labels[int(plate_row)].as_py()]
    return replace(item, about=f"{name} on the background of {ground}", context=f"on {ground}")


def jpeg(image: Image.Image) -> bytes:
    """Encode an image as a JPEG."""
    encoded = io.BytesIO()
    image.save(encoded, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return encoded.getvalue()


def data_uri(kind: str, content: bytes) -> str:
    """Write content as an address that a page can embed."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
