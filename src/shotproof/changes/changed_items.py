"""Changed items: no file holds them, they are made when they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from shotproof.changes.change import BackgroundChange, Change, ImageChange, Pixels, SoundChange
from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.layers import ImageLayers, Layers, SoundLayers
from shotproof.core.bounded_cache import BoundedCache
from shotproof.core.errors import UnreadableItem
from shotproof.core.storage.files import find
from shotproof.core.storage.places import FileInfo
from shotproof.media.box import Box
from shotproof.media.clip import RATE, SECONDS, Samples, UnwrittenClip, read_clip, resampled
from shotproof.media.images import UnwrittenImage, open_image
from shotproof.media.mask_file import read_usable_mask, scaled_mask
from shotproof.media.mixture import Mixture

# Pixels of the shorter side at which images are changed, as in ImageNet-C, unless an encoder needs more. Smaller images
# keep theirs.
SIDE = 224
# Memory for layers that a process keeps, for an item is shown on one background after the other, and plates return:
# 150 images of 224 x 300 pixels.
_MOST_CACHED_BYTES = 64 * 2**20
# Part of the digests of changed items. It is raised when a change makes other pixels or samples than before.
_VERSION = 3


@dataclass(frozen=True)
class MaskedImage:
    """An image file with the mask of its foreground.

    mask: file of a grayscale image that is light where the foreground is; None if the image has none
    box: around the foreground; None if it is unknown
    """

    path: Path
    mask: Path | None = None
    box: Box | None = None

    @property
    def files(self) -> list[Path]:
        """Return the files that it is read from."""
        return [self.path, *([] if self.mask is None else [self.mask])]

    @property
    def has_usable_mask(self) -> bool:
        """Return whether the mask can be read, has the shape of the image, and is neither empty nor full."""
        try:
            return self.mask is not None and read_usable_mask(self.mask, self.path).size > 0
        except UnreadableItem:
            return False

    def pixels(self, side: int | None = None) -> Pixels:
        """Return the pixels [height, width, 3], of which the shorter side has SIDE at most, or `side` if that is more.

        Args:
            side: that of `open_image`; None if it is unknown how many are needed
        """
        most = max(SIDE, side or 0)
        image = open_image(self.path, side=2 * most)
        shorter = min(image.size)
        if shorter > most:
            width, height = (round(length * most / shorter) for length in image.size)
            image = image.resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(image)

    def layers(self, side: int | None = None) -> ImageLayers:
        """Take the image apart; `side` is that of `pixels`.

        Raises:
            UnreadableItem: the mask cannot be read, has another shape than the image, or is empty or full.
        """
        try:
            versions = tuple(map(find, self.files))
        except (OSError, ValueError):
            return self._take_apart(side)  # raises the appropriate error
        # The versions are part of the key, so that a file that has changed is read again.
        return _cached_layers.get((self, side, versions), lambda: self._take_apart(side))

    def _take_apart(self, side: int | None) -> ImageLayers:
        assert self.mask is not None  # the catalog has checked it
        pixels, mask = self.pixels(side), read_usable_mask(self.mask, self.path)
        height, width = pixels.shape[:2]
        return ImageLayers(pixels, scaled_mask(mask, width, height), self.box)


_cached_layers: BoundedCache[tuple[MaskedImage, int | None, tuple[FileInfo, ...]], ImageLayers] = BoundedCache(
    _MOST_CACHED_BYTES, lambda layers: layers.nbytes
)


@dataclass(frozen=True)
class ChangedImage(UnwrittenImage):
    """An image with one change.

    plate: the image whose background is shown, if the change needs one
    """

    change: Change
    source: MaskedImage
    plate: MaskedImage | None = None

    def image(self, side: int | None = None) -> Image.Image:
        """Return the changed image; one that nothing changes is not scaled either."""
        if self.change.changes_nothing:
            return open_image(self.source.path, side=side)
        if isinstance(self.change, BackgroundChange):
            plate = None if self.plate is None else self.plate.layers(side)
            return Image.fromarray(self.change.compose(self.source.layers(side), plate))
        assert isinstance(self.change, ImageChange)
        pixels = self.source.pixels(side)
        return Image.fromarray(self.change.apply(pixels, ItemDraws(pixels, self.change.name)))

    @property
    def files(self) -> list[Path]:
        """Return the files that it is made of."""
        return [*self.source.files, *([] if self.plate is None else self.plate.files)]

    @property
    def misfits(self) -> list[Path]:
        """Return the masks that cannot be used: broken, of another shape than the image, empty or full."""
        sources = [source for source in (self.source, self.plate) if source is not None]
        return [source.mask for source in sources if source.mask is not None and not source.has_usable_mask]

    def digest(self, parts: Sequence[str]) -> str:
        """Return a digest of the content, given those of the files."""
        sources = [source for source in (self.source, self.plate) if source is not None]
        boxes = [source.box and tuple(source.box) for source in sources]
        return _digest(self.change, [*parts, repr(boxes)])


@dataclass(frozen=True)
class ChangedClip(UnwrittenClip):
    """A sound with one change; see ChangedImage."""

    change: Change
    source: Path | Mixture
    plate: Mixture | None = None

    def samples(self) -> Samples:
        """Return the changed sound, [n]."""
        return self.samples_at(RATE, SECONDS)

    def samples_at(self, rate: int, seconds: float | None) -> Samples:
        """Return the changed sound, [n], at the rate and length at which the unchanged one is read."""
        if isinstance(self.change, BackgroundChange):
            assert isinstance(self.source, Mixture)  # the catalog has checked it
            plate = None if self.plate is None else _layers(self.plate)
            return resampled(self.change.compose(_layers(self.source), plate), RATE, rate)
        assert isinstance(self.change, SoundChange)
        samples = read_clip(self.source, rate, seconds)
        if self.change.changes_nothing:
            return samples
        return self.change.apply(samples, ItemDraws(samples, self.change.name), rate)

    @property
    def files(self) -> list[Path]:
        """Return the files that it is made of."""
        sources = [source for source in (self.source, self.plate) if source is not None]
        return [file for source in sources for file in (source.files if isinstance(source, Mixture) else [source])]

    def digest(self, parts: Sequence[str]) -> str:
        """Return a digest of the content, given those of the files."""
        mixtures = [source for source in (self.source, self.plate) if isinstance(source, Mixture)]
        return _digest(self.change, [*parts, *(mixture.digest([]) for mixture in mixtures)])


def _layers(mixture: Mixture) -> Layers:
    """Take a mixture apart."""
    foreground, background = mixture.parts()
    assert background is not None  # the catalog has checked it
    return SoundLayers(foreground, background)


def _digest(change: Change, parts: Sequence[str]) -> str:
    """Digest a change and what it is made of. The name of a plate is left out: its files say which it is."""
    if isinstance(change, BackgroundChange):
        change = replace(change, plate=None, seed=0)
    return hashlib.sha256("\0".join(["changed", str(_VERSION), change.spelling, *parts]).encode()).hexdigest()
