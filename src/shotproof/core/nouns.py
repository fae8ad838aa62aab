"""What items are called: images, recordings, or items where it is not known or they are of both kinds."""

from __future__ import annotations

from typing import Literal

Medium = Literal["image", "sound"]

_NOUNS = {"image": ("image", "images"), "sound": ("recording", "recordings")}


def noun(medium: str | None) -> str:
    """What one item is called.

    Example:
        >>> noun("sound"), noun(None)
        ('recording', 'item')
    """
    return _NOUNS.get(medium or "", ("item", "items"))[0]


def nouns(medium: str | None) -> str:
    """What several items are called.

    Example:
        >>> nouns("image"), nouns("sound")
        ('images', 'recordings')
    """
    return _NOUNS.get(medium or "", ("item", "items"))[1]
