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
LEAST_P = 1e-99  # smaller p-values are rounding


def percent(value: float) -> str:
    """A number that is in percent, with one decimal, without the sign of percent."""
    if math.isnan(value):
        return "n/a"
    text = f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def bounds(interval: Interval) -> str:
    """The interval's ends, in brackets."""
    if interval.refused:
        return "[no interval]"
    return f"[{percent(interval.low)}, {percent(interval.high)}]"


def points(difference: float) -> str:
    """A difference in percentage points, with its sign."""
    return f"{round(difference, 1) + 0.0:+.1f}"


def level(share: float) -> str:
    """The level of an interval, e.g. `95%`."""
    return f"{100 * share:.4g}%"


def listed(words: list[str], most: int | None = None, last: str = "and") -> str:
    """E.g. `a, b and c`; of more than `most`, the first ones and how many others there are."""
    if most is not None and len(words) > most + 1:
        words = [*words[:most], f"{len(words) - most} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def seconds(count: float) -> str:
    """A time: tenths of a second below a minute, then minutes and seconds.

    Example:
        >>> seconds(4.26), seconds(125.0)
        ('4.3 s', '2 min 5 s')
    """
    whole = round(count)
    return f"{count:.1f} s" if round(count, 1) < 60 else f"{whole // 60} min {whole % 60} s"


def p_value(value: float) -> str:
    """A p-value in two digits, or as a power of ten; one that is as good as zero as a bound."""
    if math.isnan(value):
        return "n/a"
    if value >= 1e-4:
        return f"{value:.2g}"
    return f"{value:.0e}" if value >= LEAST_P else f"<{LEAST_P:.0e}"


def typeset(text: str) -> str:
    """With minus signs instead of hyphens before numbers, as wide as a digit on the page."""
    return re.sub(r"(?<!\w)-(?=\d)", MINUS, text)


def metric_symbol(name: str, label: str) -> str:
    """E.g. `wAcc-A` or `wAcc-A [captions]`: the metric with the symbol of the tasks that it was measured on."""
    sampler = re.split(r"[( ]", label, maxsplit=1)[0]
    return f"{name}-{SYMBOLS.get(sampler, sampler)}{label.removeprefix(sampler)}"
