"""Decisions read from bytes: hypothesis shrinks them, atheris mutates them by coverage, and both drive one mutator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads decisions off bytes; when these are used up, every further decision is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def below(self, count: int) -> int:
        """A number from 0 to count - 1."""
        number = 0
        for _ in range((max(count, 1) - 1).bit_length() + 7 >> 3):
            number = number << 8 | self._byte()
        return number % max(count, 1)

    def pick(self, options: Sequence[T]) -> T:
        """One of these."""
        return options[self.below(len(options))]

    def some_bytes(self, most: int) -> bytes:
        """So many bytes at most."""
        return bytes(self._byte() for _ in range(self.below(most + 1)))

    def _byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1] if self._place <= len(self._data) else 0
