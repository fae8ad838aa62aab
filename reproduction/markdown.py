"""Markdown tables of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from shotproof.stats.intervals import Estimate

NOT_RUN = "not run yet"
MINUS = "−"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"|{'|'.join(f' {cell} ' if cell != '---' else cell for cell in line)}|\n" for line in lines)


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """Write a number with a proper minus sign."""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", MINUS)


def estimate(value: Estimate) -> str:
    """Write a mean with half the width of its 95% interval, if it has one."""
    interval = value.interval()
    return number(value.mean) if interval.refused else f"{number(value.mean)} ±{interval.half_width:.2f}"


def bounds(mean: float, low: float, high: float) -> str:
    """Write a number with its interval."""
    return f"{number(mean)} [{number(low)}, {number(high)}]"
