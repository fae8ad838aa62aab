"""The shape of a task: how many classes it has, and how many items of each."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from shotproof.core.errors import InputError


@dataclass(frozen=True)
class TaskShape:
    """Classes per task, support items per class, query items per class.

    Example:
        >>> TaskShape(way=5, shot=1).items_per_class
        16
    """

    way: int = 5
    shot: int = 5
    query: int = 15

    def __post_init__(self) -> None:
        for name, least in (("way", 2), ("shot", 1), ("query", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InputError(f"{name}: expected a whole number of at least {least}, found {value!r}")

    @property
    def items_per_class(self) -> int:
        """Support and query items together."""
        return self.shot + self.query
