"""Simple drawings of animals and places, and the pen that draws them.

Animals are seen from the side, facing right, with their feet at y = 0, and are about two units long. Most are
four-legged animals of different builds; birds have builds of their own, and two animals are drawn by their own
functions. Places have a sky, a ground and random things, so that no two pictures of a place are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from PIL import ImageDraw

from shotproof.core.storage.files import parse_toml
from shotproof.worlds.glyphs import Polygon, disc

Point = tuple[float, float]


@dataclass(frozen=True)
class Pen:
    """Pen for coordinates in which x grows to the right and y downwards.

    origin: position of (0, 0) on the canvas
    scale: pixels per unit
    flip: -1 mirrors left and right, 1 does not
    """

    draw: ImageDraw.ImageDraw
    origin: Point
    scale: float
    flip: int = 1

    def polygon(self, points: Sequence[Point] | Polygon, color: str) -> None:
        """Draw a filled polygon."""
        pixels = np.asarray(points, dtype=np.float64) * (self.scale * self.flip, self.scale) + self.origin
        self.draw.polygon(pixels.ravel().tolist(), fill=color)

    def ellipse(self, center: Point, across: float, down: float, color: str, turn: float = 0.0) -> None:
        """Draw an ellipse with two radii, turned clockwise by `turn` radians."""
        rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        self.polygon(_CIRCLE * (across, down) @ rotation + center, color)

    def line(self, points: Sequence[Point], width: float, color: str, end: float | None = None) -> None:
        """Draw a line with round joints, whose width changes from `width` to `end`."""
        widths = np.linspace(width, width if end is None else end, len(points)) / 2
        for (start, r), (stop, s) in pairwise(zip(points, widths, strict=True)):
            along = np.subtract(stop, start)
            across = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
            sides = [start + across * r, stop + across * s, stop - across * s, start - across * r]
            self.polygon(np.array(sides), color)
        for point, radius in zip(points, widths, strict=True):
            self.ellipse(point, radius, radius, color)


_CIRCLE = disc(corners=24)


@dataclass(frozen=True)
class Stance:
    """Stance of an animal; every value is between 0 and 1.

    color: choice among its coats; stride: distance of its legs; head: height of its head
    """

    color: float
    stride: float
    head: float


@dataclass(frozen=True)
class FourLegged:
    """Build of a four-legged animal.

    coats: possible colors; body: half its length and height; leg: length and width; neck: length, width and upward
    angle; head: half its length and height; ears: `round`, `pointed`, `floppy`, `side` or `wide`; tail: `thin`,
    `bushy`, `curl`, `long`, `short`, `up` or `hair`; signs: other features
    """

    coats: tuple[str, ...]
    body: tuple[float, float]
    leg: tuple[float, float]
    neck: tuple[float, float, float]
    head: tuple[float, float]
    ears: str
    tail: str
    signs: tuple[str, ...] = ()

    def draw(self, pen: Pen, stance: Stance) -> None:
        """Draw the far legs, tail, neck, body, near legs and head."""
        coat = self.coats[int(stance.color * len(self.coats))]
        shade, (length, height), (leg, width) = _darker(coat), self.body, self.leg
        middle = -leg - height * 0.75
        spread = 0.16 * (stance.stride - 0.3)
        hips = [-length * 0.68, length * 0.66]
        for hip in hips:
            pen.line([(hip, middle), (hip - spread - 0.06, 0)], width, shade)
        self._draw_tail(pen, (-length * 0.93, middle - height * 0.25), coat)
        angle = self.neck[2] + 0.5 * (stance.head - 0.5)
        base = (length * 0.72, middle - height * 0.3)
        top = (base[0] + self.neck[0] * np.cos(angle), base[1] - self.neck[0] * np.sin(angle))
        if "mane" in self.signs:
            pen.line(
                [(base[0] - 0.14, base[1] - 0.06), (top[0] - 0.12, top[1] - 0.08)], self.neck[1], _darker(coat, 0.45)
            )
        pen.line([(base[0] - 0.1, base[1] + 0.1), top], self.neck[1] * 1.5, coat, end=self.neck[1])
        if "hump" in self.signs:
            pen.ellipse((-length * 0.05, middle - height * 0.8), length * 0.4, height * 0.75, coat)
        pen.ellipse((0, middle), length, height, coat)
        if "wool" in self.signs:
            for turn in np.linspace(0, 2 * np.pi, 14, endpoint=False):
                pen.ellipse((0.9 * length * np.cos(turn), middle + 0.85 * height * np.sin(turn)), 0.19, 0.17, coat)
        for hip in hips:
            pen.line([(hip, middle + height * 0.2), (hip + spread + 0.06, 0)], width, coat)
            if "hooves" in self.signs:
                pen.line([(hip + spread + 0.04, -0.07), (hip + spread + 0.06, 0)], width, "#3a3028")
        self._draw_pattern(pen, middle, base, top)
        self._draw_head(pen, top, coat)

    def _draw_tail(self, pen: Pen, at: Point, coat: str) -> None:
        x, y = at
        if self.tail == "bushy":
            pen.line([(x, y + 0.1), (x - 0.3, y + 0.1), (x - 0.62, y - 0.12)], 0.14, coat, end=0.3)
            pen.ellipse((x - 0.66, y - 0.14), 0.12, 0.1, "#f4efe6")
        elif self.tail == "curl":
            curl = [(x - 0.07 - 0.11 * np.sin(t), y - 0.02 * t + 0.1 * np.cos(t)) for t in np.linspace(0, 7, 16)]
            pen.line(curl, 0.06, _darker(coat))
        elif self.tail == "long":
            pen.line([(x, y + 0.1), (x - 0.3, y + 0.05), (x - 0.42, y - 0.3), (x - 0.3, y - 0.6)], 0.11, coat, end=0.09)
        elif self.tail == "short":
            pen.ellipse((x, y), 0.13, 0.1, coat)
        elif self.tail == "up":
            pen.line([(x, y), (x - 0.16, y - 0.25), (x - 0.1, y - 0.5)], 0.13, coat, end=0.07)
        elif self.tail == "hair":
            pen.line([(x, y), (x - 0.18, y + 0.1), (x - 0.25, y + 0.6)], 0.12, _darker(coat, 0.45), end=0.2)
        else:
            pen.line([(x, y), (x - 0.14, y + 0.12), (x - 0.17, y + 0.55)], 0.06, _darker(coat))
            pen.ellipse((x - 0.17, y + 0.58), 0.07, 0.12, "#3a3028")

    def _draw_pattern(self, pen: Pen, middle: float, base: Point, top: Point) -> None:
        length, height = self.body
        if "patches" in self.signs:
            for x, y, across, down in ((-0.55, -0.2, 0.26, 0.42), (0.1, 0.15, 0.3, 0.45), (0.62, -0.35, 0.16, 0.3)):
                pen.ellipse((x * length, middle + y * height), across * length, down * height, "#2c2a29", 0.4)
        if "spots" in self.signs:
            for x in np.linspace(-0.72, 0.72, 5):
                for y in (-0.42, 0.25):
                    pen.ellipse((float(x) * length, middle + y * height), 0.09, 0.08, "#8a5320", 0.5)
            for share in (0.3, 0.5, 0.7, 0.88):
                at = tuple(float(a + share * (b - a)) for a, b in zip(base, top, strict=True))
                pen.ellipse((at[0], at[1]), 0.07, 0.06, "#8a5320")

    def _draw_head(self, pen: Pen, top: Point, coat: str) -> None:
        (x, y), (length, height), signs = top, self.head, self.signs
        fur = "#3b3431" if "dark face" in signs else coat
        shade = _darker(fur)
        if "antlers" in signs:
            for lean in (0.0, 0.22):
                pen.line([(x, y - height), (x - 0.1 - lean, y - 0.55), (x + 0.08 - lean, y - 0.85)], 0.07, "#6b4a2b")
                pen.line([(x - 0.1 - lean, y - 0.55), (x - 0.3 - lean, y - 0.75)], 0.06, "#6b4a2b")
        if "horns" in signs:
            for lean in (0.0, 0.16):
                pen.line(
                    [(x - 0.02 - lean, y - height * 0.7), (x + 0.02 - lean, y - height - 0.2)], 0.1, "#e8dcc0", 0.03
                )
        if "swept horns" in signs:
            for lean in (0.0, 0.14):
                horn = [(x - lean, y - height), (x - 0.12 - lean, y - 0.4), (x - 0.34 - lean, y - 0.45)]
                pen.line(horn, 0.09, "#75664f", end=0.03)
        if self.ears == "wide":
            pen.ellipse((x - length * 0.55, y), height * 0.95, height * 1.25, shade)
        if "trunk" in signs:
            trunk = [(x + length * 0.7, y + 0.05), (x + length + 0.14, y + 0.4), (x + length + 0.1, y + 0.95)]
            pen.line([*trunk, (x + length + 0.3, y + 1.12)], 0.26, fur, end=0.12)
            pen.line([(x + length * 0.75, y + 0.25), (x + length + 0.38, y + 0.42)], 0.09, "#f6f0df", end=0.03)
        pen.ellipse((x + length * 0.35, y + 0.04), length, height, fur, 0.35 if "long face" in signs else 0.12)
        if "snout" in signs:
            pen.ellipse((x + length * 1.2, y + 0.1), 0.12, 0.15, shade)
            pen.ellipse((x + length * 1.22, y + 0.07), 0.03, 0.04, "#5d2d36")
        if "muzzle" in signs:
            pen.ellipse((x + length * 1.05, y + 0.14), 0.17, 0.16, "#eab9a8")
        if "nose" in signs:
            pen.ellipse((x + length * 1.3, y + 0.04), 0.08, 0.07, "#26211f")
        if "beard" in signs:
            pen.polygon([(x + 0.25, y + 0.14), (x + 0.47, y + 0.14), (x + 0.34, y + 0.46)], "#efe7d6")
        if "whiskers" in signs:
            for rise in (-0.08, 0.02, 0.12):
                pen.line([(x + length * 0.9, y + 0.1), (x + length * 1.7, y + 0.1 + rise)], 0.022, "#f3f3f0")
        if self.ears == "pointed":
            for back in (0.0, 0.24):
                pen.polygon(
                    [(x - 0.2 + back, y - 0.1), (x - 0.12 + back, y - height - 0.26), (x + 0.06 + back, y - 0.1)], shade
                )
        elif self.ears == "round":
            for back in (-0.12, 0.14):
                pen.ellipse((x + back, y - height * 0.95), height * 0.42, height * 0.42, shade)
        elif self.ears == "floppy":
            pen.ellipse((x - 0.12, y + 0.1), 0.11, 0.28, _darker(fur, 0.6), 0.2)
        elif self.ears == "side":
            pen.ellipse((x - 0.24, y - 0.12), 0.19, 0.09, shade, 0.35)
        pen.ellipse((x + length * 0.42, y - height * 0.22), 0.055, 0.06, "#15130f")


@dataclass(frozen=True)
class Bird:
    """Build of a bird.

    coats: possible colors; body: half its length and height; tilt: upward angle of the body, in radians; neck: height;
    head: radius; leg: length; bill: length; head_color: if it is not that of the coat
    """

    coats: tuple[str, ...]
    body: tuple[float, float]
    tilt: float
    neck: float
    head: float
    leg: float
    bill: float
    head_color: str | None = None
    bill_color: str = "#f09a1f"
    belly: str | None = None

    def draw(self, pen: Pen, stance: Stance) -> None:
        """Draw the legs, tail, body, wing, neck, head and bill."""
        coat = self.coats[int(stance.color * len(self.coats))]
        (length, height), tilt = self.body, self.tilt
        upright = abs(np.sin(tilt)) * length + np.cos(tilt) * height
        middle, spread = -self.leg - upright * 0.9, 0.12 * stance.stride
        for x in (-0.08 - spread, 0.14 + spread):
            pen.line(
                [(x * length * 1.6, middle), (x * length * 1.6, 0), (x * length * 1.6 + 0.14, 0)], 0.07, self.bill_color
            )
        back = (-length * np.cos(tilt), middle + length * np.sin(tilt))
        pen.line(
            [(back[0] * 0.7, middle + 0.5 * (back[1] - middle)), (back[0] - 0.24, back[1] - 0.08)],
            0.3,
            _darker(coat),
            0.1,
        )
        pen.ellipse((0, middle), length, height, coat, -tilt)
        if self.belly:
            pen.ellipse((height * 0.38, middle + 0.05), length * 0.82, height * 0.62, self.belly, -tilt)
        pen.ellipse((-length * 0.14, middle - 0.02), length * 0.62, height * 0.5, _darker(coat), -tilt + 0.12)
        chest = (length * 0.72 * np.cos(tilt), middle - length * 0.72 * np.sin(tilt))
        fur = self.head_color or coat
        head = (chest[0] + 0.16 + 0.1 * stance.head, chest[1] - self.neck - 0.14 * (stance.head - 0.5))
        pen.line([chest, (chest[0] + 0.24, (chest[1] + head[1]) / 2), head], self.head * 1.5, coat, end=self.head * 1.2)
        pen.ellipse(head, self.head * 1.12, self.head, fur)
        tip = (head[0] + self.head + self.bill, head[1] + 0.08)
        pen.polygon(
            [(head[0] + self.head * 0.8, head[1] - 0.09), tip, (head[0] + self.head * 0.8, head[1] + 0.14)],
            self.bill_color,
        )
        pen.ellipse((head[0] + self.head * 0.35, head[1] - 0.05), 0.05, 0.055, "#f8f8f4")
        pen.ellipse((head[0] + self.head * 0.38, head[1] - 0.05), 0.035, 0.04, "#15130f")


def _draw_turtle(pen: Pen, stance: Stance) -> None:
    skin = ("#7d9a4c", "#9aa05a", "#6f8a62")[int(stance.color * 3)]
    for x in (-0.5, 0.45):
        pen.line([(x, -0.3), (x + 0.12 * (stance.stride + 0.5), 0)], 0.24, skin)
    reach = 0.12 * stance.head
    pen.line([(0.6, -0.34), (0.98 + reach, -0.46 - reach)], 0.24, skin)
    pen.ellipse((1.06 + reach, -0.5 - reach), 0.2, 0.16, skin)
    pen.ellipse((1.12 + reach, -0.54 - reach), 0.04, 0.045, "#15130f")
    pen.polygon([(-0.8, -0.28), (-1.08, -0.16), (-0.78, -0.18)], skin)
    dome = [(0.85 * np.cos(t), -0.26 - 0.66 * np.sin(t)) for t in np.linspace(0, np.pi, 24)]
    pen.polygon(dome, "#6e4f27")
    for x, y in ((-0.45, -0.45), (0.0, -0.5), (0.45, -0.45), (-0.22, -0.73), (0.22, -0.73)):
        pen.ellipse((x, y), 0.17, 0.12, "#a07c3f")
    pen.line([(-0.84, -0.27), (0.84, -0.27)], 0.1, "#4d3719")


def _draw_crocodile(pen: Pen, stance: Stance) -> None:
    skin = ("#4f7a3a", "#5f7f4f", "#3f6a48")[int(stance.color * 3)]
    for x in (-0.4, 0.35):
        pen.line([(x, -0.25), (x + 0.1 * (stance.stride + 0.3), 0)], 0.18, _darker(skin))
    pen.line([(-0.5, -0.3), (-1.0, -0.2), (-1.45, -0.26 - 0.2 * stance.head)], 0.38, skin, end=0.06)
    pen.ellipse((0, -0.32), 0.75, 0.24, skin)
    gape = 0.1 + 0.16 * stance.head
    pen.polygon([(0.5, -0.4), (1.5, -0.3 - gape), (1.5, -0.24 - gape), (0.7, -0.22)], skin)
    pen.polygon([(0.5, -0.34), (0.7, -0.24), (1.42, -0.16), (1.42, -0.1), (0.5, -0.12)], _darker(skin))
    for x in np.linspace(0.85, 1.4, 5):
        pen.polygon(
            [(x - 0.04, -0.24 - gape * 0.7), (x + 0.04, -0.24 - gape * 0.7), (x, -0.14 - gape * 0.7)], "#ffffff"
        )
    for x in np.linspace(-1.1, 0.5, 9):
        pen.polygon([(x - 0.09, -0.45), (x + 0.09, -0.45), (x, -0.66)], _darker(skin))
    pen.ellipse((0.66, -0.52), 0.11, 0.1, skin)
    pen.ellipse((0.68, -0.53), 0.05, 0.055, "#15130f")


def _darker(color: str, share: float = 0.78) -> str:
    """Darken a color to a share of its brightness."""
    return "#" + "".join(f"{int(int(color[at : at + 2], 16) * share):02x}" for at in (1, 3, 5))


def _read_animals() -> dict[str, Callable[[Pen, Stance], None]]:
    """Read the function that draws each animal, in the order of the file."""
    text = resources.files(__package__).joinpath("animals.toml").read_text("utf-8")
    builds = {"four-legged": FourLegged, "bird": Bird}
    functions = {"crocodile": _draw_crocodile, "turtle": _draw_turtle}
    animals = parse_toml(text, "animals").items()
    return {name: builds[build.pop("build")](**build).draw if build else functions[name] for name, build in animals}


ANIMALS = _read_animals()


Draws = npt.NDArray[np.float64]  # [things, 3], each between 0 and 1
THINGS = 12
HORIZON = 0.42  # share of the picture's height, from the top


def _draw_sky_and_ground(pen: Pen, sky: str, ground: str) -> None:
    pen.polygon([(0, 0), (1, 0), (1, 1), (0, 1)], sky)
    pen.polygon([(0, HORIZON), (1, HORIZON), (1, 1), (0, 1)], ground)


def _meadow(pen: Pen, draws: Draws) -> None:
    _draw_sky_and_ground(pen, "#a9d5f5", "#7cc05c")
    pen.ellipse((draws[0, 0], HORIZON + 0.08), 0.5, 0.16, "#8fd06c")
    for x, y, shade in draws:
        at = (x, 0.5 + 0.48 * y)
        for lean in (-0.025, 0.0, 0.025):
            pen.line([at, (x + lean, at[1] - 0.06)], 0.012, "#4f9a3a")
        if shade > 0.5:
            pen.ellipse((x + 0.03, at[1] - 0.03), 0.018, 0.018, "#f7e04b" if shade > 0.75 else "#f3f3fa")


def _water(pen: Pen, draws: Draws) -> None:
    _draw_sky_and_ground(pen, "#cfe8f7", "#3f8fd0")
    pen.polygon([(0, HORIZON - 0.05), (1, HORIZON - 0.09 * draws[0, 2]), (1, HORIZON), (0, HORIZON)], "#7d9c8c")
    for x, y, width in draws:
        at = 0.48 + 0.5 * y
        half = 0.05 + 0.06 * width
        wave = [(x + half * t, at + 0.012 * np.cos(np.pi * 3 * t)) for t in np.linspace(-1, 1, 9)]
        pen.line(wave, 0.014, "#a8d6f5")


def _snow(pen: Pen, draws: Draws) -> None:
    _draw_sky_and_ground(pen, "#b9c9dc", "#f2f6fb")
    for x, y, _ in draws[:3]:
        height = 0.16 + 0.16 * y
        pen.polygon([(x - 0.25, HORIZON), (x, HORIZON - height), (x + 0.25, HORIZON)], "#8d9db3")
        pen.polygon(
            [(x - 0.09, HORIZON - height * 0.64), (x, HORIZON - height), (x + 0.09, HORIZON - height * 0.64)], "#ffffff"
        )
    for x, y, size in draws:
        pen.ellipse((x, y), 0.008 + 0.01 * size, 0.008 + 0.01 * size, "#ffffff" if y < HORIZON else "#d3deeb")


def _forest(pen: Pen, draws: Draws) -> None:
    _draw_sky_and_ground(pen, "#7fa283", "#8c8650")
    for x, y, size in draws[np.argsort(draws[:, 1])]:
        foot = HORIZON - 0.03 + 0.14 * y
        pen.line([(x, foot), (x, foot - 0.55)], 0.045 + 0.03 * size, "#4a3420")
        for step in (0.12, 0.26, 0.4):
            wide = 0.15 - 0.14 * step
            pen.polygon(
                [(x - wide, foot - step), (x + wide, foot - step), (x, foot - step - 0.24)],
                "#1f4f2c" if size < 0.5 else "#2b6136",
            )


def _sand(pen: Pen, draws: Draws) -> None:
    _draw_sky_and_ground(pen, "#f7dfae", "#e8c277")
    pen.ellipse((draws[0, 0], 0.16), 0.08, 0.08, "#fff3c4")
    for x, y, size in draws[1:5]:
        pen.ellipse((x, HORIZON + 0.1 + 0.4 * y), 0.3 + 0.2 * size, 0.07, "#f1d08b")
        pen.line([(x - 0.3, HORIZON + 0.13 + 0.4 * y), (x + 0.3, HORIZON + 0.13 + 0.4 * y)], 0.014, "#cfa35a")
    for x, y, _ in draws[5:7]:
        foot = HORIZON + 0.06 + 0.1 * y
        pen.line([(x, foot), (x, foot - 0.24)], 0.05, "#5c8a4a")
        pen.line([(x, foot - 0.1), (x + 0.08, foot - 0.1), (x + 0.08, foot - 0.19)], 0.035, "#5c8a4a")


def _city(pen: Pen, draws: Draws) -> None:
    _draw_sky_and_ground(pen, "#d6dbe2", "#7d8187")
    for at, (_, tall, tone) in enumerate(draws[:6]):
        left, top = at / 6 - 0.01, HORIZON + 0.04 - (0.18 + 0.26 * tall)
        color = ("#a35d4b", "#8c8f9c", "#b99b74", "#6f7c8e")[int(tone * 4)]
        pen.polygon([(left, top), (left + 0.16, top), (left + 0.16, HORIZON + 0.04), (left, HORIZON + 0.04)], color)
        for row in np.arange(top + 0.04, HORIZON, 0.08):
            for column in (0.03, 0.09):
                x = left + column
                pen.polygon([(x, row), (x + 0.035, row), (x + 0.035, row + 0.045), (x, row + 0.045)], "#f5e6a3")
    for x in np.arange(-0.2 + 0.2 * draws[6, 0], 1, 0.3):
        pen.polygon([(x, 0.84), (x + 0.16, 0.84), (x + 0.16, 0.87), (x, 0.87)], "#ecebe4")


PLACES: dict[str, Callable[[Pen, Draws], None]] = {
    "meadow": _meadow,
    "water": _water,
    "snow": _snow,
    "forest": _forest,
    "sand": _sand,
    "city": _city,
}
