"""Nouns for messages: images, recordings, or items if there are both; counts with their nouns."""

from __future__ import annotations

from typing import Literal

Medium = Literal["image", "sound"]

_NOUNS = {"image": ("image", "images"), "sound": ("recording", "recordings")}


def noun(medium: str | None) -> str:
    """Return the noun for one item.

    Example:
        >>> noun("sound"), noun(None)
        ('recording', 'item')
    """
    return _NOUNS.get(medium or "", ("item", "items"))[0]


def nouns(medium: str | None) -> str:
    """Return the noun for several items.

    Example:
        >>> nouns("image"), nouns("sound")
        ('images', 'recordings')
    """
    return _NOUNS.get(medium or "", ("item", "items"))[1]


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun.

    Args:
        number: the count
        noun: the singular
        plural: the plural, if it is not the singular with an s

    Example:
        >>> counted(1, "method"), counted(1200, "task"), counted(0, "class", "classes")
        ('1 method', '1,200 tasks', '0 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
