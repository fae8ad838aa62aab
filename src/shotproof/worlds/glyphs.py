"""Outlines of shapes, each a list of polygons [points, 2] within the unit circle.

A class shape has a family and a number: a star with n points, a gear with n teeth. There are shapes for any number of
classes, because n is not limited. Signs are the small pictures on stickers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Polygon = npt.NDArray[np.float64]
Outline = list[Polygon]

_FULL = 2 * np.pi


def class_shape(index: int) -> tuple[str, Outline]:
    """Return the name and the outline of a class shape by its index; neighbors are of different families."""
    family = list(_FAMILIES)[index % len(_FAMILIES)]
    draw, first, step = _FAMILIES[family]
    number = first + step * (index // len(_FAMILIES))
    return f"{family}-{number}", draw(number)


def place(outline: Outline, center: tuple[float, float], radius: float, turn: float = 0.0) -> Outline:
    """Turn an outline by an angle, scale it to a radius and move it to a center."""
    matrix = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]) * radius
    return [polygon @ matrix + center for polygon in outline]


def disc(radius: float = 1.0, corners: int = 32) -> Polygon:
    """Return a disc around the origin."""
    return _polar(radius, _angles(corners))


def _polar(radius: Any, angle: npt.ArrayLike) -> Polygon:
    """Convert radii and angles to points; angle 0 is up, because y grows downwards in an image."""
    return np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=-1)


def _angles(count: int) -> npt.NDArray[np.float64]:
    return np.linspace(0.0, _FULL, count, endpoint=False)


def _around(part: Polygon, count: int) -> Outline:
    """Return copies of a part, turned around the origin."""
    return [copy for angle in _angles(count) for copy in place([part], (0.0, 0.0), 1.0, angle)]


def _sector(inner: float, start: float, end: float) -> Polygon:
    """Return a piece of a ring from an inner radius to 1, between two angles."""
    arc = np.linspace(start, end, 24)
    return np.concatenate([_polar(1.0, arc), _polar(inner, arc[::-1])])


def _beads(count: int) -> Outline:
    size = min(0.34, 0.62 * np.sin(np.pi / count))
    return [disc(size) + center for center in _polar(1.0 - size, _angles(count))]


def _bars(count: int) -> Outline:
    width = 2 / (2 * count - 1)
    lefts = -1 + 2 * width * np.arange(count)
    return [0.8 * np.array([[x, -1.0], [x + width, -1.0], [x + width, 1.0], [x, 1.0]]) for x in lefts]


_ARM = np.array([[-0.2, 0.2], [-0.2, -1.0], [0.2, -1.0], [0.2, 0.2]])

# For each family: the outline with n corners (points, teeth, ...), the first n, and a visible step to the next.
_FAMILIES: dict[str, tuple[Callable[[int], Outline], int, int]] = {
    "polygon": (lambda n: [_polar(1.0, _angles(n))], 3, 1),
    "star": (lambda n: [_polar(np.tile([1.0, 0.45], n), _angles(2 * n))], 5, 3),
    "gear": (lambda n: [_polar(np.tile([1.0, 1.0, 0.74, 0.74], n), _angles(4 * n))], 8, 4),
    "flower": (lambda n: [_polar(0.62 + 0.38 * np.cos(n * _angles(120)), _angles(120))], 3, 2),
    "cross": (lambda n: _around(_ARM, n), 4, 1),
    "ring": (lambda n: _around(_sector(0.55, 0.38, _FULL / n - 0.38), n), 1, 1),
    "pinwheel": (
        lambda n: [_polar(np.tile([1.0, 0.42], n), np.repeat(_angles(n), 2) + np.tile([0.0, 0.12], n))],
        3,
        2,
    ),
    "beads": (_beads, 3, 2),
    "bars": (_bars, 2, 1),
    "wedges": (lambda n: _around(_sector(0.12, 0.0, _FULL / n * 0.62), n), 3, 2),
}


def _heart() -> Polygon:
    t = _angles(40)
    across = 16 * np.sin(t) ** 3
    down = -13 * np.cos(t) + 5 * np.cos(2 * t) + 2 * np.cos(3 * t) + np.cos(4 * t)
    return np.stack([across, down], axis=-1) / 17


def _moon() -> Polygon:
    # A disc minus a smaller one at its right; the two circles meet at these angles.
    outer = _polar(1.0, np.linspace(0.675, 0.675 - 4.492, 24))
    inner = _polar(0.8, np.linspace(0.221 - 3.583, 0.221, 24)) + np.array([0.45, 0.0])
    return np.concatenate([outer, inner])


def _drop() -> Polygon:
    round_part = _polar(0.65, np.linspace(0.3 * np.pi, 1.7 * np.pi, 24)) + np.array([0.0, 0.35])
    return np.concatenate([[[0.0, -1.0]], round_part])


def _points(*pairs: Sequence[float]) -> Polygon:
    return np.array(pairs, dtype=np.float64)


SIGNS: dict[str, Polygon] = {
    "heart": _heart(),
    "moon": _moon(),
    "drop": _drop(),
    "bolt": _points((0.25, -1), (-0.6, 0.15), (-0.05, 0.15), (-0.25, 1), (0.6, -0.2), (0.05, -0.2)),
    "house": _points(
        (0, -0.9), (0.95, -0.05), (0.65, -0.05), (0.65, 0.8), (-0.65, 0.8), (-0.65, -0.05), (-0.95, -0.05)
    ),
    "arrow": _points((0, -1), (0.8, -0.1), (0.3, -0.1), (0.3, 0.95), (-0.3, 0.95), (-0.3, -0.1), (-0.8, -0.1)),
}
