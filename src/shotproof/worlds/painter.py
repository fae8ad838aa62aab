"""Painter of pictures: a background with a texture, a shape, and optionally a sticker and a frame.

Pictures are painted four times as large and then reduced, which smooths the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from shotproof.core.draws import bits, uniform
from shotproof.core.runtime.runtime import current_runtime
from shotproof.core.storage.whole_files import whole_file
from shotproof.worlds.glyphs import SIGNS, Outline, disc, place

BACKGROUNDS = {
    "blue": "#7db8ee",
    "green": "#8fce8a",
    "yellow": "#f6dc6b",
    "pink": "#f5a3c7",
    "orange": "#f7ab62",
    "grey": "#b3b8bd",
}
# Whether a point (x, y) is painted in the lighter tone; patterns repeat at every integer.
TEXTURES: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda x, y: x + y < 0,
    "striped": lambda x, y: (x + y) % 1 < 0.5,
    "dotted": lambda x, y: np.hypot(x % 1 - 0.5, y % 1 - 0.5) < 0.3,
    "checked": lambda x, y: (x % 1 < 0.5) ^ (y % 1 < 0.5),
    "gridded": lambda x, y: (x % 1 < 0.16) | (y % 1 < 0.16),
    "wavy": lambda x, y: (y + 0.22 * np.sin(2 * np.pi * x)) % 1 < 0.5,
}
FILLS = {
    "red": "#c62828",
    "blue": "#1c4fb0",
    "green": "#1f7a34",
    "purple": "#6f2da0",
    "brown": "#6b4226",
    "black": "#22252a",
}
STICKERS = {
    "heart": "#d81b60",
    "moon": "#3949ab",
    "drop": "#0288d1",
    "bolt": "#ef6c00",
    "house": "#6d4c41",
    "arrow": "#2e7d32",
}
FRAMES = {
    "white": "#ffffff",
    "black": "#15171a",
    "red": "#b71c1c",
    "green": "#00796b",
    "yellow": "#c9971c",
    "blue": "#1a2a6c",
}

_OVERSIZE = 4
_TILES = 6  # repetitions of a texture across a picture
_RIM = disc(0.024, corners=8)


@dataclass(frozen=True)
class Look:
    """Look of a picture apart from its shape: one value of each factor."""

    background: str
    texture: str
    fill: str
    sticker: str
    frame: str


@dataclass(frozen=True)
class Pose:
    """Positions in a picture; every value is between 0 and 1, and 0.5 is the middle of its range."""

    across: float
    down: float
    scale: float
    turn: float
    corner: float
    slide_across: float
    slide_down: float


def draw_poses(seed: int, purpose: int, count: int) -> list[Pose]:
    """Draw `count` poses with independent values; `purpose` separates these draws from others with the same seed."""
    random_bits = bits(seed, purpose, np.arange(count)[:, None], np.arange(len(fields(Pose))))
    return [Pose(*values) for values in uniform(random_bits, 24).tolist()]


def save_pictures(paths: Sequence[Path], pictures: Iterable[Image.Image]) -> None:
    """Write each picture to its path, as PNG."""
    with current_runtime().progress_bar("drawing", len(paths)) as advance:
        for path, picture in zip(paths, pictures, strict=True):
            with whole_file(path) as temporary:
                picture.save(temporary, format="png", compress_level=1)
            advance(1)


def paint(outline: Outline, look: Look, pose: Pose, size: int) -> Image.Image:
    """Paint a picture of size x size pixels, RGB."""
    canvas = size * _OVERSIZE
    image = _paint_scene(outline, look.background, look.texture, look.fill, pose, canvas)
    draw = ImageDraw.Draw(image)
    corner = int(pose.corner * 4)
    badge = (canvas * (0.22, 0.78)[corner % 2], canvas * (0.22, 0.78)[corner // 2])
    for part, part_radius, color in (
        (disc(), 0.14, "black"),
        (disc(), 0.13, "white"),
        (SIGNS[look.sticker], 0.085, STICKERS[look.sticker]),
    ):
        for polygon in place([part], badge, canvas * part_radius):
            draw.polygon(polygon.ravel().tolist(), fill=color)
    draw.rectangle((0, 0, canvas - 1, canvas - 1), outline=FRAMES[look.frame], width=canvas * 5 // 64)
    return image.reduce(_OVERSIZE)


def paint_plain(outline: Outline, background: str, texture: str, fill: str, pose: Pose, size: int) -> Image.Image:
    """Paint a picture without sticker and frame, size x size pixels, RGB; the background may be a color, `#rrggbb`."""
    return _paint_scene(outline, background, texture, fill, pose, size * _OVERSIZE).reduce(_OVERSIZE)


def _paint_scene(outline: Outline, background: str, texture: str, fill: str, pose: Pose, canvas: int) -> Image.Image:
    """Paint a shape in front of its background."""
    slide = (int(pose.slide_across * canvas / _TILES), int(pose.slide_down * canvas / _TILES))
    image = _paint_backdrop(background, texture, canvas).crop((*slide, slide[0] + canvas, slide[1] + canvas))
    draw = ImageDraw.Draw(image)
    center = (canvas * (0.5 + 0.1 * (pose.across - 0.5)), canvas * (0.5 + 0.1 * (pose.down - 0.5)))
    radius = canvas * (0.32 + 0.08 * (pose.scale - 0.5))
    shape = place(outline, center, radius, turn=0.7 * (pose.turn - 0.5))
    # A light rim, painted as slightly shifted copies, keeps the shape visible on a background of the same color.
    for polygon in shape:
        for shift in _RIM * canvas:
            draw.polygon((polygon + shift).ravel().tolist(), fill="white")
    for polygon in shape:
        draw.polygon(polygon.ravel().tolist(), fill=FILLS[fill])
    return image


@lru_cache(maxsize=len(BACKGROUNDS) * len(TEXTURES))
def _paint_backdrop(background: str, texture: str, canvas: int) -> Image.Image:
    """Paint a textured plane, one tile larger than the canvas, so that the texture can be shifted."""
    plane = canvas + canvas // _TILES + 1
    y, x = (axis * (_TILES / canvas) for axis in np.ogrid[:plane, :plane])
    color = BACKGROUNDS.get(background, background)
    tone = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    lighter = tone + (255 - tone) * 0.45
    pixels = np.where(TEXTURES[texture](x, y)[..., None], lighter, tone)
    return Image.fromarray(pixels.astype(np.uint8))
