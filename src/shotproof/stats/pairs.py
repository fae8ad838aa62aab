"""Pairs of methods on the same tasks: differences, which of them are conclusive, and ranks with ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from shotproof.errors import Mismatch
from shotproof.stats.intervals import Estimate, FloatArray, Interval, check_level

Conclusion = Literal["+", "0", "-"]
_OPPOSITE: dict[Conclusion, Conclusion] = {"+": "-", "0": "0", "-": "+"}


@dataclass(frozen=True)
class Pair:
    """How far method `a` is above method `b`, and whether that is conclusive.

    `interval` is of this pair alone; `p_value` and `conclusion` are corrected for the number of pairs where asked for,
    so a pair may be inconclusive although its own interval excludes zero.
    """

    a: str
    b: str
    interval: Interval
    p_value: float
    conclusion: Conclusion


def paired_difference(a: FloatArray, b: FloatArray) -> Estimate:
    """The mean of a_t - b_t over tasks t: [tasks] each, of the same tasks."""
    if a.shape != b.shape:
        raise Mismatch(f"values of {len(a)} and of {len(b)} tasks cannot be paired: evaluate both on the same tasks")
    return Estimate.over_tasks(a - b)


def compare_pairs(
    differences: Mapping[tuple[str, str], Estimate], covers: str, level: float = 0.95, correct: bool = True
) -> list[Pair]:
    """Conclusions on all pairs under one interval; `correct` by Holm for the number of pairs."""
    check_level(level)
    p_values = np.array([difference.p_value() for difference in differences.values()])
    p_values = holm(p_values) if correct else p_values
    return [
        Pair(a, b, difference.interval(covers, level), float(p), _conclude(difference.mean, float(p), level))
        for ((a, b), difference), p in zip(differences.items(), p_values, strict=True)
    ]


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's step-down correction: the adjusted p-values, in the order given."""
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate((count - np.arange(count)) * p_values[order])
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def all_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Each pair once, in the order of the names."""
    return list(combinations(names, 2))


def conclusive(pairs: Sequence[Pair]) -> int:
    """The number of conclusive pairs."""
    return sum(pair.conclusion != "0" for pair in pairs)


def ranks(means: Mapping[str, float], pairs: Sequence[Pair]) -> dict[str, int]:
    """Ranks from 1, best mean first; a method shares the rank of the best of its group where no pair separates them.

    Methods are gone through from the best mean down. One that is conclusively worse than the best of the group opens
    a new group, whose rank counts the methods before it, so that ranks never contradict the means.
    """
    conclusions = {(pair.a, pair.b): pair.conclusion for pair in pairs}
    conclusions |= {(b, a): _OPPOSITE[conclusion] for (a, b), conclusion in conclusions.items()}
    ranked: dict[str, int] = {}
    best, rank = "", 0
    for place, name in enumerate(sorted(means, key=lambda name: -means[name]), start=1):
        if not ranked or conclusions[best, name] == "+":
            best, rank = name, place
        ranked[name] = rank
    return {name: ranked[name] for name in means}


def _conclude(difference: float, p_value: float, level: float) -> Conclusion:
    if p_value > 1 - level:
        return "0"
    return "+" if difference > 0 else "-"
