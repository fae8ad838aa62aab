"""The shape of a task: how many classes it has, and how many items of each."""

from __future__ import annotations

from dataclasses import dataclass

from shotproof.core.limits import QUERY, SHOT, WAY


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
        for name, limits in (("way", WAY), ("shot", SHOT), ("query", QUERY)):
            limits.check(name, getattr(self, name))

    @property
    def items_per_class(self) -> int:
        """Support and query items together."""
        return self.shot + self.query
