"""Limits of whole numbers in flags, files and Python calls: larger ones would start work that never ends.

Numbers with a meaning of their own have a name here, with their minimum and maximum. All other whole-number options are
at most MOST, unless they set a limit themselves.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

from shotproof.core.errors import InputError
from shotproof.core.plain_values import format_value

MOST = 10_000_000
LARGEST_SEED = 2**63 - 1


class Limits(NamedTuple):
    """Minimum and maximum of a whole number.

    Example:
        >>> TASKS.check("tasks", 10**12)
        Traceback (most recent call last):
        shotproof.core.errors.InputError: tasks: expected a whole number from 1 to 10,000,000, found 1000000000000
    """

    least: int
    most: int

    def __str__(self) -> str:
        return f"a whole number from {self.least:,} to {self.most:,}"

    def check(self, name: str, value: Any) -> int:
        """Return the value as an int. Raise InputError, starting with the name, if it is not one or is out of range."""
        if isinstance(value, bool) or not isinstance(value, Integral) or not self.least <= int(value) <= self.most:
            raise InputError(f"{name}: expected {self}, found {format_value(value)}")
        return int(value)


TASKS = Limits(1, MOST)
WAY = Limits(2, 10_000)
SHOT = Limits(1, 1_000_000)
QUERY = Limits(1, 1_000_000)
SEED = Limits(0, LARGEST_SEED)
EPOCHS = Limits(1, 1_000_000)
HALVINGS = Limits(2, 100_000)
TASKS_PER_HALF = Limits(2, MOST)
PERMUTATIONS = Limits(0, 1_000_000)
WORKERS = Limits(1, 10_000)
BATCH = Limits(1, 1_000_000)
COUNT = Limits(1, MOST)  # anything else: classes, items, rows of a table
PORT = Limits(0, 65_535)
