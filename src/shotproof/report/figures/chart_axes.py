"""Axes and whiskers, which all figures share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from shotproof.comparison.numbers import typeset
from shotproof.report.figures.svg import FONT_SIZE, Box, Scale, element, line, text
from shotproof.stats.intervals import Interval


def x_axis(scale: Scale, frame: Box, label: str, ticks: Sequence[float] | None = None) -> list[Markup]:
    """The axis below a frame, with its grid; ticks are round values unless given."""
    parts = [line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")]
    for value in scale.ticks() if ticks is None else ticks:
        x = scale(value)
        parts += [line(x, frame.top, x, frame.bottom, "grid"), text(x, frame.bottom + 14, _tick(value), "middle")]
    parts.append(text((frame.left + frame.right) / 2, frame.bottom + 31, label, "middle", "axis-label"))
    return parts


def y_axis(scale: Scale, frame: Box, label: str) -> list[Markup]:
    """The axis left of a frame, with its grid."""
    parts = [line(frame.left, frame.top, frame.left, frame.bottom, "axis")]
    for value in scale.ticks():
        y = scale(value)
        parts += [line(frame.left, y, frame.right, y, "grid"), text(frame.left - 6, y + 3.5, _tick(value), "end")]
    x, y = FONT_SIZE, (frame.top + frame.bottom) / 2
    turned = f"rotate(-90 {x} {y:g})"
    parts.append(element("text", label, x=x, y=y, transform=turned, text_anchor="middle", class_="axis-label"))
    return parts


def whisker(scale: Scale, interval: Interval, at: float, class_: str, *, vertical: bool = False) -> Markup:
    """An interval as a line across, at this height; or upright."""
    low, high = map(scale, ends(interval))
    return line(at, low, at, high, class_) if vertical else line(low, at, high, at, class_)


def ends(interval: Interval) -> tuple[float, float]:
    """The interval's ends; a single task gives none, and its mean stands for both."""
    if math.isnan(interval.low):
        return interval.mean, interval.mean
    return interval.low, interval.high


def _tick(value: float) -> str:
    return typeset(f"{round(value, 6):g}")
