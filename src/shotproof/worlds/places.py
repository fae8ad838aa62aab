"""Places as simple drawings: a sky and a ground, and what stands about there; no two pictures of one are the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from shotproof.worlds.pen import Pen

Draws = npt.NDArray[np.float64]  # [things, 3], each between 0 and 1
THINGS = 12
HORIZON = 0.42  # of the picture's height, from the top


def _plain(pen: Pen, sky: str, ground: str) -> None:
    pen.polygon([(0, 0), (1, 0), (1, 1), (0, 1)], sky)
    pen.polygon([(0, HORIZON), (1, HORIZON), (1, 1), (0, 1)], ground)


def _meadow(pen: Pen, draws: Draws) -> None:
    _plain(pen, "#a9d5f5", "#7cc05c")
    pen.ellipse((draws[0, 0], HORIZON + 0.08), 0.5, 0.16, "#8fd06c")
    for x, y, shade in draws:
        at = (x, 0.5 + 0.48 * y)
        for lean in (-0.025, 0.0, 0.025):
            pen.line([at, (x + lean, at[1] - 0.06)], 0.012, "#4f9a3a")
        if shade > 0.5:
            pen.ellipse((x + 0.03, at[1] - 0.03), 0.018, 0.018, "#f7e04b" if shade > 0.75 else "#f3f3fa")


def _water(pen: Pen, draws: Draws) -> None:
    _plain(pen, "#cfe8f7", "#3f8fd0")
    pen.polygon([(0, HORIZON - 0.05), (1, HORIZON - 0.09 * draws[0, 2]), (1, HORIZON), (0, HORIZON)], "#7d9c8c")
    for x, y, width in draws:
        at = 0.48 + 0.5 * y
        half = 0.05 + 0.06 * width
        wave = [(x + half * t, at + 0.012 * np.cos(np.pi * 3 * t)) for t in np.linspace(-1, 1, 9)]
        pen.line(wave, 0.014, "#a8d6f5")


def _snow(pen: Pen, draws: Draws) -> None:
    _plain(pen, "#b9c9dc", "#f2f6fb")
    for x, y, _ in draws[:3]:
        height = 0.16 + 0.16 * y
        pen.polygon([(x - 0.25, HORIZON), (x, HORIZON - height), (x + 0.25, HORIZON)], "#8d9db3")
        pen.polygon(
            [(x - 0.09, HORIZON - height * 0.64), (x, HORIZON - height), (x + 0.09, HORIZON - height * 0.64)], "#ffffff"
        )
    for x, y, size in draws:
        pen.ellipse((x, y), 0.008 + 0.01 * size, 0.008 + 0.01 * size, "#ffffff" if y < HORIZON else "#d3deeb")


def _forest(pen: Pen, draws: Draws) -> None:
    _plain(pen, "#7fa283", "#8c8650")
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
    _plain(pen, "#f7dfae", "#e8c277")
    pen.ellipse((draws[0, 0], 0.16), 0.08, 0.08, "#fff3c4")
    for x, y, size in draws[1:5]:
        pen.ellipse((x, HORIZON + 0.1 + 0.4 * y), 0.3 + 0.2 * size, 0.07, "#f1d08b")
        pen.line([(x - 0.3, HORIZON + 0.13 + 0.4 * y), (x + 0.3, HORIZON + 0.13 + 0.4 * y)], 0.014, "#cfa35a")
    for x, y, _ in draws[5:7]:
        foot = HORIZON + 0.06 + 0.1 * y
        pen.line([(x, foot), (x, foot - 0.24)], 0.05, "#5c8a4a")
        pen.line([(x, foot - 0.1), (x + 0.08, foot - 0.1), (x + 0.08, foot - 0.19)], 0.035, "#5c8a4a")


def _city(pen: Pen, draws: Draws) -> None:
    _plain(pen, "#d6dbe2", "#7d8187")
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
