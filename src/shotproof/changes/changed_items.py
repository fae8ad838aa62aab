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
from shotproof.core.errors import UnreadableItem
from shotproof.media.clip import Samples, UnwrittenClip, read_clip
from shotproof.media.images import UnwrittenImage, open_image
from shotproof.media.mixture import Mixture

SIDE = 224  # pixels of the shorter side at which images are changed, as in ImageNet-C; smaller images keep theirs


@dataclass(frozen=True)
class MaskedImage:
    """An image file with the mask of its foreground.

    mask: file of a grayscale image that is light where the foreground is; None if the image has none
    box: left, top, right and bottom of the foreground, as shares of the width and height
    """

    path: Path
    mask: Path | None = None
    box: tuple[float, float, float, float] | None = None

    @property
    def files(self) -> list[Path]:
        """Return the files that it is read from."""
        return [self.path, *([] if self.mask is None else [self.mask])]

    def pixels(self) -> Pixels:
        """Return the pixels [height, width, 3], scaled down so that the shorter side has at most SIDE of them."""
        image = open_image(self.path, side=2 * SIDE)
        shorter = min(image.size)
        if shorter > SIDE:
            width, height = (round(length * SIDE / shorter) for length in image.size)
            image = image.resize((width, height), Image.Resampling.BICUBIC)
        return np.asarray(image)

    def layers(self) -> ImageLayers:
        """Take the image apart.

        Raises:
            UnreadableItem: the mask cannot be read or has another shape than the image.
        """
        assert self.mask is not None  # the catalog has checked it
        pixels, mask = self.pixels(), open_image(self.mask).convert("L")
        height, width = pixels.shape[:2]
        if abs(mask.width * height - mask.height * width) > max(mask.width, mask.height, width, height):
            raise UnreadableItem(
                f"mask {self.mask} has {mask.width} x {mask.height} pixels, which is not the shape of {self.path} "
                f"({width} x {height})"
            )
        resized = np.asarray(mask.resize((width, height), Image.Resampling.BILINEAR))
        return ImageLayers(pixels, resized > 127, self.box)


@dataclass(frozen=True)
class ChangedImage(UnwrittenImage):
    """An image with one change.

    plate: the image whose background is shown, if the change needs one
    """

    change: Change
    source: MaskedImage
    plate: MaskedImage | None = None

    def image(self) -> Image.Image:
        """Return the changed image; one that nothing changes is not scaled either."""
        if self.change.changes_nothing:
            return open_image(self.source.path)
        if isinstance(self.change, BackgroundChange):
            plate = None if self.plate is None else self.plate.layers()
            return Image.fromarray(self.change.compose(self.source.layers(), plate))
        assert isinstance(self.change, ImageChange)
        pixels = self.source.pixels()
        return Image.fromarray(self.change.apply(pixels, ItemDraws(pixels, self.change.name)))

    @property
    def files(self) -> list[Path]:
        """Return the files that it is made of."""
        return [*self.source.files, *([] if self.plate is None else self.plate.files)]

    def digest(self, parts: Sequence[str]) -> str:
        """Return a digest of the content, given those of the files."""
        boxes = [source.box for source in (self.source, self.plate) if source is not None]
        return _digest(self.change, [*parts, repr(boxes)])


@dataclass(frozen=True)
class ChangedClip(UnwrittenClip):
    """A sound with one change; see ChangedImage."""

    change: Change
    source: Path | Mixture
    plate: Mixture | None = None

    def samples(self) -> Samples:
        """Return the changed sound, [n]."""
        if isinstance(self.change, BackgroundChange):
            assert isinstance(self.source, Mixture)  # the catalog has checked it
            plate = None if self.plate is None else _layers(self.plate)
            composed: Samples = self.change.compose(_layers(self.source), plate)
            return composed
        assert isinstance(self.change, SoundChange)
        samples = read_clip(self.source)
        if self.change.changes_nothing:
            return samples
        return self.change.apply(samples, ItemDraws(samples, self.change.name))

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
    return hashlib.sha256("\0".join(["changed", change.spelling, *parts]).encode()).hexdigest()
