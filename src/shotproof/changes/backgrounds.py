"""Changes to the background alone, named as in the Backgrounds Challenge (Xiao et al., Noise or Signal, 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.changes.change import BackgroundChange
from shotproof.changes.layers import Content, Layers
from shotproof.core.errors import InputError
from shotproof.core.nouns import Medium
from shotproof.core.options import option

MOST_MARGIN_DB = 60.0
_PAPER = "Xiao et al., Noise or Signal: The Role of Image Backgrounds in Object Recognition, 2021"


@dataclass(frozen=True)
class OnlyForeground(BackgroundChange):
    """The foreground alone: an image on gray, a sound without its background."""

    about = "the foreground alone, on gray or in silence"
    paper = _PAPER

    def compose(self, layers: Layers, plate: Layers | None) -> Content:
        """Leave the background out."""
        return layers.only_foreground()


@dataclass(frozen=True)
class OnlyBackground(BackgroundChange):
    """The background alone; the accuracy above chance on it comes from the background."""

    about = "the background alone, with the foreground filled in from around it, or left out"
    paper = _PAPER

    def compose(self, layers: Layers, plate: Layers | None) -> Content:
        """Leave the foreground out."""
        return layers.only_background()


@dataclass(frozen=True)
class _Mixed(BackgroundChange):
    """Base class of changes that put the foreground on another item's background."""

    paper = _PAPER

    margin_db: float | None = option(
        None,
        "sounds: decibels by which the foreground is louder than the background; by default as in its own mixture",
        least=-MOST_MARGIN_DB,
        most=MOST_MARGIN_DB,
    )

    def require_medium(self, medium: Medium | None) -> None:
        """Reject a margin for images, which have no loudness."""
        super().require_medium(medium)
        if medium == "image" and self.margin_db is not None:
            raise InputError(f"change '{self}': margin_db applies to sounds, and these are images: leave it out")

    def compose(self, layers: Layers, plate: Layers | None) -> Content:
        """Put the foreground on the background of the plate."""
        assert plate is not None  # the catalog has checked it
        return layers.on_background_of(plate, self.margin_db)


@dataclass(frozen=True)
class MixedSame(_Mixed):
    """The foreground on the background of another item of its class: what cutting and pasting itself costs."""

    about = "the foreground on the background of another item of its class"
    plates = "same"


@dataclass(frozen=True)
class MixedRandom(_Mixed):
    """The foreground on the background of any other item."""

    about = "the foreground on the background of any other item"
    plates = "random"


@dataclass(frozen=True)
class MixedRival(_Mixed):
    """The foreground on the background of an item of another class of its task."""

    about = "the foreground on the background of another class of the task"
    plates = "rival"
