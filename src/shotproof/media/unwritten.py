"""Items that no file holds: they are made when they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path


class UnwrittenItem(ABC):
    """Base class of images and sounds that are made from files when they are read."""

    @property
    @abstractmethod
    def files(self) -> list[Path]:
        """Return the files that it is made of."""

    @abstractmethod
    def digest(self, parts: Sequence[str]) -> str:
        """Return a digest of the content, given those of the files."""


ItemFile = Path | UnwrittenItem
