"""A pen for simple drawings: ellipses, polygons and thick lines in a drawing's own coordinates, placed on a canvas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PIL import ImageDraw

from shotproof.worlds.glyphs import Polygon, disc

Point = tuple[float, float]


@dataclass(frozen=True)
class Pen:
    """Draws in coordinates where x grows to the right and y downwards; `origin` is where (0, 0) is on the canvas.

    flip: -1 mirrors left and right, 1 does not
    scale: pixels per unit
    """

    draw: ImageDraw.ImageDraw
    origin: Point
    scale: float
    flip: int = 1

    def polygon(self, points: Sequence[Point] | Polygon, color: str) -> None:
        """A filled polygon."""
        placed = np.asarray(points, dtype=np.float64) * (self.scale * self.flip, self.scale) + self.origin
        self.draw.polygon(placed.ravel().tolist(), fill=color)

    def ellipse(self, center: Point, across: float, down: float, color: str, turn: float = 0.0) -> None:
        """An ellipse of two radii; `turn` lets its right end fall, in radians."""
        turned = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        self.polygon(_ROUND * (across, down) @ turned + center, color)

    def line(self, points: Sequence[Point], width: float, color: str, end: float | None = None) -> None:
        """A line with round joints, from a width to that at its end."""
        widths = np.linspace(width, width if end is None else end, len(points)) / 2
        for (start, r), (stop, s) in pairwise(zip(points, widths, strict=True)):
            along = np.subtract(stop, start)
            across = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
            sides = [start + across * r, stop + across * s, stop - across * s, start - across * r]
            self.polygon(np.array(sides), color)
        for point, radius in zip(points, widths, strict=True):
            self.ellipse(point, radius, radius, color)


_ROUND = disc(corners=24)
