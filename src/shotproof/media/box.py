"""Box around the foreground of an image."""

from __future__ import annotations

import math
from typing import NamedTuple


class Box(NamedTuple):
    """Rectangle around the foreground, as shares of the width and height."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def is_inside(self) -> bool:
        """Return whether it is a rectangle inside the image; NaN is not."""
        return 0 <= self.left < self.right <= 1 and 0 <= self.top < self.bottom <= 1

    def mirrored(self) -> Box:
        """Return the box in the image with left and right exchanged."""
        return Box(1 - self.right, self.top, 1 - self.left, self.bottom)

    def in_pixels(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom in pixels; at least one pixel each way, inside the image."""
        left, top = min(int(self.left * width), width - 1), min(int(self.top * height), height - 1)
        right, bottom = round(self.right * width), round(self.bottom * height)
        return left, top, min(max(right, left + 1), width), min(max(bottom, top + 1), height)

    def touched_pixels(self, width: int, height: int) -> tuple[slice, slice]:
        """Return the rows and columns of all pixels that it covers, if only in part."""
        rows = slice(int(self.top * height), math.ceil(self.bottom * height))
        return rows, slice(int(self.left * width), math.ceil(self.right * width))
