"""Building blocks of figures: elements, scales, ticks, labels that do not overlap.

Every text and attribute is escaped. Colors come from classes of the page's style sheet, so figures follow its theme.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from shotproof.comparison.numbers import typeset
from shotproof.core.storage.whole_files import write_text
from shotproof.stats.intervals import Interval

FONT_SIZE = 10
# Mean width of a sans-serif character, rounded up so that real text stays inside its box.
CHARACTER_WIDTH = 0.58 * FONT_SIZE
MARKERS = (
    "M-3.6 0A3.6 3.6 0 1 0 3.6 0A3.6 3.6 0 1 0-3.6 0Z",
    "M-3.2-3.2H3.2V3.2H-3.2Z",
    "M0-4.3L4 3H-4Z",
    "M0-4.5L4.5 0L0 4.5L-4.5 0Z",
    "M0 4.3L4-3H-4Z",
    "M-1.4-4.2H1.4V-1.4H4.2V1.4H1.4V4.2H-1.4V1.4H-4.2V-1.4H-1.4Z",
    "M0-4.3L4.1-1.3L2.5 3.5H-2.5L-4.1-1.3Z",
)
COLORS = 8
STYLE = Path(__file__).parents[1] / "pages" / "templates" / "page.css"
TITLE_HEIGHT = 20
MARGIN = 8
ENLARGED = 1.5  # enlargement of a figure in a file of its own, against its smallest size on a page

_OPENING = re.compile(r'<svg viewBox="0 0 (\S+) (\S+)"([^>]*)>')


def element(tag: str, *content: str, **attributes: str | float) -> Markup:
    """Build an element; `class_` becomes `class`, `text_anchor` `text-anchor`. Content that is no markup is escaped."""
    pairs = "".join(f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"' for name, value in attributes.items())
    return Markup(f"<{tag}{pairs}>{''.join(escape(part) for part in content)}</{tag}>")


def picture(width: float, height: float, description: str, parts: Iterable[Markup]) -> Markup:
    """Draw a figure from its parts, with its text alternative."""
    box = f"0 0 {_value(width)} {_value(height)}"
    return element("svg", *parts, viewBox=box, role="img", aria_label=description, class_="figure")


def text(x: float, y: float, content: str, anchor: str = "start", class_: str = "tick") -> Markup:
    """Draw a line of text with its baseline at y."""
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Draw a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def marker(x: float, y: float, series: int, tooltip: str | None = None) -> Markup:
    """Draw the mark of a series, with its own color and shape, so that series do not differ by color alone."""
    title = [element("title", tooltip)] if tooltip else []
    transform = f"translate({_value(x)} {_value(y)})"
    shape = MARKERS[series % len(MARKERS)]
    return element("path", *title, d=shape, transform=transform, class_=f"mark c{series % COLORS}")


def curve(places: Iterable[tuple[float, float]], series: int) -> Markup:
    """Draw a line through these places, in the color of a series."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return element("path", d=path, class_=f"curve c{series % COLORS}")


def row_name(name: str, length: int, right: float, y: float) -> Markup:
    """Draw the name of a row left of the frame, shortened, with the full name as its tooltip."""
    tooltip = element("title", name)
    return element("text", shorten(name, length), tooltip, x=right, y=y, text_anchor="end", class_="name")


def names_width(names: Iterable[str], length: int) -> float:
    """Compute the width of the column of row names."""
    return 10 + max(text_width(shorten(name, length)) for name in names)


def shorten(content: str, length: int) -> str:
    """Shorten a text by leaving out its middle, if it is longer than `length`."""
    if len(content) <= length:
        return content
    tail = (length - 1) // 3
    return content[: length - 1 - tail] + "…" + content[len(content) - tail :]


def text_width(content: str) -> float:
    """Estimate the width of a text."""
    return len(content) * CHARACTER_WIDTH


@dataclass(frozen=True)
class Scale:
    """Linear map from values to positions, with round ticks."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    @classmethod
    def around(
        cls, values: Sequence[float], start: float, end: float, padding: float = 0.06, least: float = 0.5
    ) -> Scale:
        """Build a scale that holds all values, with a margin at both ends: a share of their range, at least `least`."""
        low, high = min(values), max(values)
        margin = max((high - low) * padding, least)
        return cls(low - margin, high + margin, start, end)

    def ticks(self, count: int = 5) -> list[float]:
        """Choose about `count` round values within the scale."""
        rough = (self.high - self.low) / count
        power = 10 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.8)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


@dataclass(frozen=True)
class Box:
    """Rectangle that a label or a mark takes up."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Return whether the two boxes overlap."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def is_inside(self, other: Box) -> bool:
        """Return whether this box lies within the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


def place_labels(points: Sequence[tuple[float, float]], labels: Sequence[str], frame: Box) -> list[Box | None]:
    """Place each point's label in a box near it, clear of points, labels and leaders; None if there is no room."""
    marks = [_square(x, y, 5) for x, y in points]
    labels_placed: list[Box] = []
    leaders: list[Box] = []
    boxes: list[Box | None] = [None] * len(points)
    # The most crowded points first: isolated points find room later.
    for index in sorted(range(len(points)), key=lambda i: -sum(math.dist(points[i], point) < 40 for point in points)):
        point = points[index]
        for box in _boxes_around(point, text_width(labels[index]), points):
            leader = _leader(*point, box)
            is_taken = any(box.overlaps(other) for group in (marks, labels_placed, leaders) for other in group)
            # A leader may pass under marks, which are drawn above it, but not over another label.
            crosses_label = any(a.overlaps(b) for a in leader for b in labels_placed)
            if box.is_inside(frame) and not is_taken and not crosses_label:
                boxes[index] = box
                labels_placed.append(box)
                leaders += leader
                break
    return boxes


def nearest(x: float, y: float, box: Box) -> tuple[float, float]:
    """Return the point of the box that is nearest to (x, y), where a leader ends."""
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)


def _leader(x: float, y: float, box: Box) -> list[Box]:
    """Cover the leader from a point to its label with small boxes."""
    end_x, end_y = nearest(x, y, box)
    steps = int(math.hypot(end_x - x, end_y - y) // 2)
    return [_square(x + (end_x - x) * i / steps, y + (end_y - y) * i / steps, 1) for i in range(1, steps)]


def _square(x: float, y: float, half: float) -> Box:
    return Box(x - half, y - half, x + half, y + half)


def _boxes_around(point: tuple[float, float], width: float, points: Sequence[tuple[float, float]]) -> list[Box]:
    """List boxes for the label of a point, the clearest first: near to it, and nearer to it than to other points."""
    height = FONT_SIZE + 1.0
    sides = [(1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (0.0, 1.0)]
    between = [(a * c, b * d) for a, b in ((1, 1), (1, 0.5), (0.5, 1)) for c in (1, -1) for d in (-1, 1)]
    boxes = []
    for distance in (6, 10, 16, 24, 34, 46, 60, 76):
        for horizontal, vertical in sides + between:
            x = point[0] + horizontal * (distance + width / 2)
            y = point[1] + vertical * (distance + height / 2)
            boxes.append(Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2))

    def ambiguity(box: Box) -> float:
        distance = math.dist(point, nearest(*point, box))
        return distance + 20 * any(math.dist(other, nearest(*other, box)) < distance for other in points)

    return sorted(boxes, key=ambiguity)


def _value(value: str | float) -> str:
    return str(escape(value)) if isinstance(value, str) else f"{round(value, 1):g}"


def x_axis(scale: Scale, frame: Box, label: str, ticks: Sequence[float] | None = None) -> list[Markup]:
    """Draw the axis below a frame, with its grid; ticks are round values unless given."""
    parts = [line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")]
    for value in scale.ticks() if ticks is None else ticks:
        x = scale(value)
        parts += [line(x, frame.top, x, frame.bottom, "grid"), text(x, frame.bottom + 14, _tick(value), "middle")]
    parts.append(text((frame.left + frame.right) / 2, frame.bottom + 31, label, "middle", "axis-label"))
    return parts


def y_axis(scale: Scale, frame: Box, label: str) -> list[Markup]:
    """Draw the axis left of a frame, with its grid."""
    parts = [line(frame.left, frame.top, frame.left, frame.bottom, "axis")]
    for value in scale.ticks():
        y = scale(value)
        parts += [line(frame.left, y, frame.right, y, "grid"), text(frame.left - 6, y + 3.5, _tick(value), "end")]
    x, y = FONT_SIZE, (frame.top + frame.bottom) / 2
    rotation = f"rotate(-90 {x} {y:g})"
    parts.append(element("text", label, x=x, y=y, transform=rotation, text_anchor="middle", class_="axis-label"))
    return parts


def whisker(scale: Scale, interval: Interval, at: float, class_: str, *, vertical: bool = False) -> Markup:
    """Draw an interval as a horizontal line at this height, or as a vertical one."""
    low, high = map(scale, ends(interval))
    return line(at, low, at, high, class_) if vertical else line(low, at, high, at, class_)


def ends(interval: Interval) -> tuple[float, float]:
    """Return the interval's ends; both are the mean if there is no interval, as for a single task."""
    if math.isnan(interval.low):
        return interval.mean, interval.mean
    return interval.low, interval.high


def _tick(value: float) -> str:
    return typeset(f"{round(value, 6):g}")


def write_svg(path: Path, figure: Markup, title: str) -> None:
    """Write a figure with its title above it to a file."""
    opening = _OPENING.match(figure)
    assert opening, "expected a figure built by svg.picture"
    width, height = float(opening[1]), float(opening[2])
    parts = [
        element("style", Markup(STYLE.read_text(encoding="utf-8"))),
        text(0, TITLE_HEIGHT - 9, title, class_="axis-label"),
        element("g", Markup(figure[opening.end() :].removesuffix("</svg>")), transform=f"translate(0 {TITLE_HEIGHT})"),
    ]
    full_width, full_height = width + 2 * MARGIN, TITLE_HEIGHT + height + 2 * MARGIN
    size = f'viewBox="{-MARGIN} {-MARGIN} {full_width:g} {full_height:g}" width="{ENLARGED * full_width:g}"'
    # A transparent figure would be shown on the viewer's own background, which may have the color of its text.
    background = 'style="background: var(--paper)"'
    inner = "".join(parts)
    write_text(path, f'<svg xmlns="http://www.w3.org/2000/svg" {size} {background}{opening[3]}>{inner}</svg>\n')
