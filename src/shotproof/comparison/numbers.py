"""Numbers and metrics as text, for the terminal, pages and figures: percent with one decimal, intervals in brackets."""

from __future__ import annotations

import math
import re

from shotproof.results.evaluated import Metric
from shotproof.results.origin import RANDOM
from shotproof.stats.intervals import Interval

METRIC_NAMES: dict[Metric, str] = {"acc": "Acc", "wacc": "wAcc"}
# FewSTAB's names of the metrics: wAcc-R on random tasks, wAcc-A on tasks with biased attributes.
SYMBOLS = {RANDOM: "R", "fewstab": "A"}
MINUS = "\u2212"
LEAST_P = 1e-99  # smaller p-values are rounding errors


def percent(value: float) -> str:
    """Format a number in percent with one decimal, without the percent sign."""
    if math.isnan(value):
        return "n/a"
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def bounds(interval: Interval) -> str:
    """Format the bounds of an interval, in brackets."""
    if interval.refused:
        return "[no interval]"
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def points(difference: float) -> str:
    """Format a difference in percentage points, with its sign."""
    return f"{round(difference, 1) + 0.0:+.1f}"


def level(share: float) -> str:
    """Format the level of an interval, e.g. `95%`."""
    return f"{100 * share:.4g}%"


def listed(words: list[str], most: int | None = None, last: str = "and") -> str:
    """Join words as `a, b and c`; beyond `most`, write the first ones and count the others."""
    if most is not None and len(words) > most + 1:
        words = [*words[:most], f"{len(words) - most} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def seconds(count: float) -> str:
    """Format a duration: tenths of a second below a minute, then minutes and seconds.

    Example:
        >>> seconds(4.26), seconds(125.0)
        ('4.3 s', '2 min 5 s')
    """
    rounded = round(count)
    return f"{count:.1f} s" if round(count, 1) < 60 else f"{rounded // 60} min {rounded % 60} s"


def p_value(value: float) -> str:
    """Format a p-value with two digits, or as a power of ten; practically zero is written as an upper bound."""
    if math.isnan(value):
        return "n/a"
    if value >= 1e-4:
        return f"{value:.2g}"
    return f"{value:.0e}" if value >= LEAST_P else f"<{LEAST_P:.0e}"


def typeset(text: str) -> str:
    """Replace hyphens before numbers by minus signs, which are as wide as a digit."""
    return re.sub(r"(?<!\w)-(?=\d)", MINUS, text)


def metric_symbol(name: str, label: str) -> str:
    """Return the metric with the symbol of its tasks, e.g. `wAcc-A` or `wAcc-A [captions]`."""
    sampler = re.split(r"[( ]", label, maxsplit=1)[0]
    return f"{name}-{SYMBOLS.get(sampler, sampler)}{label.removeprefix(sampler)}"
