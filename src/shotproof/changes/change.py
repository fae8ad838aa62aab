"""Contract of a change, which alters one thing in an item and leaves everything else as it is, and the registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from shotproof.changes.item_draws import ItemDraws
from shotproof.changes.layers import Content, Layers
from shotproof.core.errors import InputError
from shotproof.core.limits import SEED
from shotproof.core.nouns import Medium
from shotproof.core.options import Component, option
from shotproof.core.registry import Registry
from shotproof.media.clip import RATE, Samples

Pixels = npt.NDArray[np.uint8]  # [height, width, 3]
# Whose background is shown: that of an item of the same class, of any item, or of another class of the task.
Plates = Literal["same", "random", "rival"]

SEVERITY = "how strong the change is, from 1 to 5; 0 leaves items as they are"


class Change(Component, ABC):
    """One change to an item. It depends on nothing but its options and the content of the item.

    media: kinds of items that it can change
    """

    kind = "change"
    media: ClassVar[tuple[Medium, ...]]

    @property
    def changes_nothing(self) -> bool:
        """Return whether items stay as they are, bit for bit."""
        return False

    def require_medium(self, medium: Medium | None) -> None:
        """Reject items of another medium.

        Raises:
            InputError: with the changes that fit.
        """
        if medium is not None and medium not in self.media:
            fitting = [name for name in changes.names() if medium in changes.get(name).media]
            raise InputError(f"change '{self.name}' does not apply to {medium}s: expected one of {', '.join(fitting)}")


@dataclass(frozen=True)
class ImageChange(Change):
    """Base class of changes to the pixels of an image."""

    media = ("image",)

    severity: int = option(3, SEVERITY, least=0, most=5)

    @property
    def changes_nothing(self) -> bool:
        """Return whether the severity is 0."""
        return self.severity == 0

    @abstractmethod
    def apply(self, pixels: Pixels, draws: ItemDraws) -> Pixels:
        """Change an image [height, width, 3]; the result has the same shape. Called with a severity of at least 1.

        Lengths are in pixels of an image whose shorter side has 224: `scale_of(pixels)` converts them.
        """


@dataclass(frozen=True)
class SoundChange(Change):
    """Base class of changes to the samples of a sound."""

    media = ("sound",)

    severity: int = option(3, SEVERITY, least=0, most=5)

    @property
    def changes_nothing(self) -> bool:
        """Return whether the severity is 0."""
        return self.severity == 0

    @abstractmethod
    def apply(self, samples: Samples, draws: ItemDraws, rate: int = RATE) -> Samples:
        """Change a sound, [n] at `rate`; the result is as long. Called with a severity of at least 1."""


@dataclass(frozen=True)
class BackgroundChange(Change):
    """Base class of changes to the background alone, of images with masks and of sounds mixed with a background.

    plates: whose background is shown; None if no other item's is
    """

    media = get_args(Medium)
    plates: ClassVar[Plates | None] = None

    seed: int = option(0, "decides whose background is shown", within=SEED)
    plate: str | None = option(None, "item whose background is shown; the sampler `changed` chooses it")

    @abstractmethod
    def compose(self, layers: Layers, plate: Layers | None) -> Content:
        """Compose the item anew from its layers and, if `plates` is set, from those of the plate."""


changes: Registry[Change] = Registry(
    "change",
    {
        "blur": "shotproof.changes.blur:Blur",
        "color": "shotproof.changes.light:Color",
        "compression": "shotproof.changes.resolution:Compression",
        "crop": "shotproof.changes.geometry:Crop",
        "light": "shotproof.changes.light:Light",
        "noise": "shotproof.changes.noise:Noise",
        "occlusion": "shotproof.changes.geometry:Occlusion",
        "pixelation": "shotproof.changes.resolution:Pixelation",
        "rotation": "shotproof.changes.geometry:Rotation",
        "band": "shotproof.changes.band:Band",
        "clipping": "shotproof.changes.clipping:Clipping",
        "gain": "shotproof.changes.gain:Gain",
        "reverberation": "shotproof.changes.reverberation:Reverberation",
        "sound-noise": "shotproof.changes.sound_noise:SoundNoise",
        "speed": "shotproof.changes.speed:Speed",
        "only-foreground": "shotproof.changes.backgrounds:OnlyForeground",
        "only-background": "shotproof.changes.backgrounds:OnlyBackground",
        "mixed-same": "shotproof.changes.backgrounds:MixedSame",
        "mixed-random": "shotproof.changes.backgrounds:MixedRandom",
        "mixed-rival": "shotproof.changes.backgrounds:MixedRival",
    },
)
