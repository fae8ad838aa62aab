"""Pairs of classifiers on the same tasks: their differences, and conclusions on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shotproof.results.evaluated import Classifier
from shotproof.stats.intervals import Estimate, FloatArray, Interval, check_level

Conclusion = Literal["+", "0", "-"]
_OPPOSITE: dict[Conclusion, Conclusion] = {"+": "-", "0": "0", "-": "+"}


@dataclass(frozen=True)
class Pair:
    """How far classifier `a` is above classifier `b`, and whether that is conclusive.

    `interval` is of this pair alone; `p_value` and `conclusion` are corrected for the number of pairs if requested, so
    a pair may be inconclusive although its own interval excludes zero. `direct` is the usual comparison, which is not
    paired: it is conclusive if the intervals of both methods do not overlap.
    """

    a: Classifier
    b: Classifier
    interval: Interval
    p_value: float
    conclusion: Conclusion
    direct: Conclusion = "0"

    def turned(self) -> Pair:
        """Swap the two classifiers."""
        return replace(self.negated(), a=self.b, b=self.a)

    def negated(self) -> Pair:
        """Negate the difference, for quantities of which less is better."""
        signs = {"conclusion": _OPPOSITE[self.conclusion], "direct": _OPPOSITE[self.direct]}
        return replace(self, interval=self.interval.negated(), **signs)  # type: ignore[arg-type]


def compare_pairs(
    differences: Mapping[tuple[Classifier, Classifier], Estimate],
    interval_name: str,
    level: float = 0.95,
    correct: bool = True,
    estimates: Mapping[Classifier, Estimate] | None = None,
) -> list[Pair]:
    """Compare all pairs under one interval.

    Args:
        differences: the difference of each pair
        interval_name: the interval
        level: the confidence level
        correct: whether to correct by Holm for the number of pairs that have an interval
        estimates: the estimate of each classifier, for the direct comparison, which is not corrected
    """
    check_level(level)
    p_values = _p_values(list(differences.values()), correct)
    intervals = {
        classifier: estimate.interval(interval_name, level) for classifier, estimate in (estimates or {}).items()
    }
    return [
        Pair(
            a,
            b,
            difference.interval(interval_name, level),
            float(p),
            _conclude(difference.mean, float(p), level),
            compare_directly(intervals[a], intervals[b]) if intervals else "0",
        )
        for ((a, b), difference), p in zip(differences.items(), p_values, strict=True)
    ]


def compare_directly(first: Interval, second: Interval) -> Conclusion:
    """Compare two intervals directly: + or - if one lies above the other (*Oops, I Sampled it Again*, Eq. 4), else 0.

    Example:
        >>> compare_directly(Interval(80.0, 79.0, 81.0), Interval(77.0, 75.0, 79.0))
        '0'
    """
    if first.refused or second.refused:
        return "0"
    return "+" if first.low > second.high else "-" if first.high < second.low else "0"


def conclude(estimates: Sequence[Estimate], level: float = 0.95, correct: bool = True) -> list[Conclusion]:
    """Conclude which estimates are above or below zero; if `correct`, by Holm for the number with an interval."""
    check_level(level)
    p_values = _p_values(estimates, correct)
    return [_conclude(estimate.mean, float(p), level) for estimate, p in zip(estimates, p_values, strict=True)]


def corrected_together(families: Sequence[Sequence[Pair]], level: float) -> list[list[Pair]]:
    """Correct the pairs of several families as one family, by Holm."""
    p_values = iter(_p_values([pair.interval.estimate for family in families for pair in family], correct=True))
    return [
        [
            replace(pair, p_value=float(p), conclusion=_conclude(pair.interval.mean, float(p), level))
            for pair, p in zip(family, p_values, strict=False)
        ]
        for family in families
    ]


def _p_values(estimates: Sequence[Estimate], correct: bool) -> FloatArray:
    """Compute the p-values, corrected by Holm if `correct`."""
    p_values = np.array([estimate.p_value() for estimate in estimates])
    if correct:
        is_tested = np.array([estimate.spread is not None for estimate in estimates], dtype=np.bool_)
        p_values[is_tested] = holm(p_values[is_tested])
    return p_values


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust p-values by Holm's step-down correction, in the order given."""
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate((count - np.arange(count)) * p_values[order])
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _conclude(difference: float, p_value: float, level: float) -> Conclusion:
    """Return the sign of a difference, or 0 if its p-value is too large."""
    if p_value > 1 - level:
        return "0"
    return "+" if difference > 0 else "-"
