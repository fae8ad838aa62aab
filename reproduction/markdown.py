"""Tables of figures as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from shotproof.stats.intervals import Estimate

NOT_RUN = "not run yet"
MINUS = "−"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"|{'|'.join(f' {cell} ' if cell != '---' else cell for cell in line)}|\n" for line in lines)


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """A number with a minus sign that is one."""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", MINUS)


def estimate(found: Estimate) -> str:
    """A mean with half of the width of its 95% interval, where it has one."""
    interval = found.interval()
    return number(found.mean) if interval.refused else f"{number(found.mean)} ±{interval.half_width:.2f}"


def bounds(mean: float, low: float, high: float) -> str:
    """A figure with its interval."""
    return f"{number(mean)} [{number(low)}, {number(high)}]"
