"""How many queries, how many tasks: planned from three moments (*Oops, I Sampled it Again*, section 4 and appendix A).

Given a task's K classes and its support, let mu_c be the accuracy expected on new queries of class c. Over tasks,

    m1 = E[mu_c],    m2 = E[mu_c^2],    m3 = sum over pairs c != c' of E[mu_c mu_c'] / K^2

(m1 and m2 are means over c too). A task's accuracy A_t on Q queries per class has E[A_t^2] as the sum over all pairs of
queries: the same query, K Q times; two of one class, K Q (Q - 1) times; two of different classes. Hence

    Var(A_t) = m1 / (K Q) + (Q - 1) / (K Q) m2 + m3 - m1^2 = alpha + noise / Q,
    alpha = m2 / K + m3 - m1^2,    noise = (m1 - m2) / K.

m3 holds the factor (K - 1) / K of "two different classes": with a mean over pairs in its place the formula would need
that factor. alpha is the variance of a task's expected accuracy, so it is never negative but for errors of estimation.
Data of C classes with N items each gives about C N / (K (Q + S)) tasks without replacement, so their mean has

    Var = K / (N C) (alpha Q + beta / Q + gamma),    beta = S noise,    gamma = S alpha + noise,

which is least at Q = sqrt(beta / alpha): it grows with the shots S and does not depend on N. Moments, alpha, beta and
gamma are of accuracies from 0 to 1, as the paper has them; what comes of them is in percentage points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from shotproof.core.errors import InputError, InsufficientData
from shotproof.core.limits import COUNT, MOST, QUERY, SHOT, WAY
from shotproof.core.nouns import counted
from shotproof.stats.intervals import check_level
from shotproof.tasks.uniform.depletion import draw_classes

QUERIES = (1, 2, 5, 10, 15, 30)
ROUNDING = 1e-8  # a variance below this, in squared points, is a zero
NEAR = 1.05  # an interval that is wider by this factor is as good as the narrowest
# Best numbers of queries in *Oops, I Sampled it Again* (section 4), by shots: read off curves of several data sets.
PUBLISHED = {1: 1, 5: 5, 10: 7}


@dataclass(frozen=True)
class TaskVariance:
    """The variance of a task's accuracy, or of a paired difference, with Q queries per class: alpha + noise / Q."""

    alpha: float
    noise: float

    def at(self, query: int) -> float:
        """With this number of queries per class, in squared points; an alpha estimated below 0 counts as 0."""
        return 1e4 * (max(self.alpha, 0.0) + self.noise / query)

    def beta(self, shot: int) -> float:
        """The factor of 1 / Q in the variance of the mean."""
        return shot * self.noise

    def gamma(self, shot: int) -> float:
        """What does not depend on Q in the variance of the mean."""
        return shot * self.alpha + self.noise

    def best_query(self, shot: int) -> float:
        """The Q with the least variance of the mean; infinite where alpha is not above 0."""
        return math.sqrt(self.beta(shot) / self.alpha) if self.alpha > 0 else math.inf


@dataclass(frozen=True)
class ScoreMoments:
    """The moments of this module's head. The last two are for estimates, and None where moments are given.

    `m1_squared` estimates m1^2 without the error of the mean. `score_squared` is the mean square of a query's score:
    m1 for an accuracy, where a query scores 0 or 1; more for a paired difference, where it scores -1, 0 or 1.

    Example:
        >>> round(ScoreMoments(m1=0.85, m2=0.74, m3=0.578).variance(way=5).best_query(shot=5), 1)
        5.6
    """

    m1: float
    m2: float
    m3: float
    m1_squared: float | None = None
    score_squared: float | None = None

    def variance(self, way: int) -> TaskVariance:
        """How a task's variance depends on the number of queries."""
        m1_squared = self.m1**2 if self.m1_squared is None else self.m1_squared
        square = self.m1 if self.score_squared is None else self.score_squared
        return TaskVariance(alpha=self.m2 / way + self.m3 - m1_squared, noise=(square - self.m2) / way)


def estimate_moments(
    scores: npt.ArrayLike, queries: npt.ArrayLike, score_squares: npt.ArrayLike | None = None
) -> ScoreMoments:
    """Unbiased estimates from a pilot. With Q queries in every class, `variance(way).at(Q)` is the sample variance.

    Args:
        scores: sums of the queries' scores, [tasks, way]: for an accuracy the correct answers, for a paired difference
            one method's correct answers minus the other's
        queries: numbers of queries, [tasks, way]
        score_squares: for a paired difference, how many queries just one of the two answered correctly, [tasks, way]

    Returns:
        The moments.

    Raises:
        InputError: other shapes, fewer than two tasks, or a class with fewer than two queries.

    Example:
        >>> estimate_moments([[1, 2], [2, 2]], [[2, 2], [2, 2]]).m1
        0.875
    """
    k, n = np.asarray(scores, dtype=np.float64), np.asarray(queries, dtype=np.float64)
    squares = k if score_squares is None else np.asarray(score_squares, dtype=np.float64)
    if k.ndim != 2 or n.shape != k.shape or squares.shape != k.shape:
        raise InputError(f"pilot: expected counts of shape [tasks, way] each, found {k.shape}, {n.shape}")
    tasks, way = k.shape
    if tasks < 2:
        raise InputError("pilot: one task says nothing of the variance between tasks; expected at least 2, better 200")
    if n.min() < 2:
        raise InputError("pilot: 1 query per class cannot tell m2 from m1; expected at least 2 queries in every class")
    rate = k / n
    task = rate.mean(axis=1)
    return ScoreMoments(
        m1=float(rate.mean()),
        m2=float(((k**2 - squares) / (n * (n - 1))).mean()),
        m3=float((rate.sum(axis=1) ** 2 - (rate**2).sum(axis=1)).mean()) / way**2,
        # Products of different tasks only: the square of the mean would be too large by the mean's own variance.
        m1_squared=float((task.sum() ** 2 - (task**2).sum()) / (tasks * (tasks - 1))),
        score_squared=float((squares / n).mean()),
    )


@dataclass(frozen=True)
class PlannedTasks:
    """What to expect of tasks without replacement with `query` queries per class, in points.

    `deviation` is the standard deviation of a task's accuracy, `tasks` the number of tasks that the data gives, and
    `half_width` that of the mean's interval (Student's t), on average; None where there are fewer than two tasks.
    """

    query: int
    deviation: float
    tasks: int
    half_width: float | None


@dataclass(frozen=True)
class Plan:
    """What to expect at several numbers of queries, and which to take.

    `best_query` is sqrt(beta / alpha), infinite where alpha is not above 0. `query` is the whole number with the
    narrowest interval on this data, where tasks are whole and Student's t is wide for a handful of them. `near` are the
    lowest and the highest number with an interval at most 5% wider. Where nothing is known of the data, both are None
    and the curve is empty.
    """

    moments: ScoreMoments
    variance: TaskVariance
    shot: int
    way: int
    level: float
    best_query: float
    query: int | None = None
    curve: tuple[PlannedTasks, ...] = ()
    near: tuple[int, int] | None = None

    def reasons(self) -> list[str]:
        """Why the narrowest interval, sqrt(beta / alpha) and the paper's number need not agree, in sentences."""
        told = []
        if self.query is not None and self.near is not None:
            low, high = self.near
            if low < high:
                told.append(f"From {low} to {high} queries there are intervals at most 5% wider than the narrowest.")
            if not math.isinf(self.best_query) and self.query != max(round(self.best_query), 1):
                told.append(
                    f"The narrowest is at {self.query}, not at {self.best_query:.1f}: the data gives whole tasks, in "
                    "steps, and few tasks have a wider Student's t; the formula knows neither."
                )
        if self.shot in PUBLISHED:
            published = PUBLISHED[self.shot]
            told.append(
                f"Oops, I Sampled it Again has about {published} at {self.shot} "
                f"{'shot' if self.shot == 1 else 'shots'}{self._where(published)}: read off flat curves of other data "
                "and features. The best number is lower the more the accuracy varies between tasks (alpha), and higher "
                "the noisier one query is (beta)."
            )
        return told

    def _where(self, published: int) -> str:
        """Where the paper's number is on this curve."""
        if self.near is None:
            return ""
        low, high = self.near
        return f", {'within' if low <= published <= high else 'outside of'} this range" if low < high else ""

    def to_json(self) -> dict[str, Any]:
        """As plain values, half-widths in points."""
        return {
            "moments": {"m1": self.moments.m1, "m2": self.moments.m2, "m3": self.moments.m3},
            "alpha": self.variance.alpha,
            "beta": self.variance.beta(self.shot),
            "gamma": self.variance.gamma(self.shot),
            "level": self.level,
            "best_query": None if math.isinf(self.best_query) else self.best_query,
            "query": self.query,
            "near": self.near and list(self.near),
            "reasons": self.reasons(),
            "curve": [{"query": p.query, "tasks": p.tasks, "half_width": p.half_width} for p in self.curve],
        }


def plan(
    moments: ScoreMoments,
    *,
    shot: int,
    way: int,
    items: int | Sequence[int] | None = None,
    classes: int | None = None,
    queries: Sequence[int] = QUERIES,
    level: float = 0.95,
) -> Plan:
    """How many queries to take on data that is used without replacement.

    Args:
        moments: of tasks of the same way and shot
        shot: support items per class
        way: classes per task
        items: of each class of the data: one number for all of its `classes`, or one number per class; None where
            nothing is known of the data
        classes: how many the data has
        queries: numbers of queries to show; the best one is added
        level: of the intervals

    Returns:
        The best number of queries, and what to expect of each number.

    Raises:
        InputError: a value that cannot be used, or an accuracy that never varies.
        InsufficientData: the data does not give two tasks.

    Example:
        >>> made = plan(ScoreMoments(m1=0.85, m2=0.74, m3=0.578), shot=5, way=5, classes=50, items=59)
        >>> round(made.best_query, 1), made.query
        (5.6, 6)
    """
    check_level(level)
    _require_moments(moments)
    WAY.check("way", way)
    SHOT.check("shot", shot)
    for query in queries or [0]:
        QUERY.check("queries", query)
    variance = moments.variance(way)
    if variance.at(1) < ROUNDING:
        raise InputError(f"the accuracy is {moments.m1:.1%} and never varies: nothing can be planned from it")
    made = Plan(moments, variance, shot, way, level, variance.best_query(shot))
    if items is None:
        return made
    sizes = _sizes(items, classes)
    points = {
        query: _point(variance, query, available_tasks(sizes, way, shot + query), level)
        for query in sorted({*queries, *_candidates(sizes, way, shot)})
    }
    widths = {query: point.half_width for query, point in points.items() if point.half_width is not None}
    if not widths:
        raise InsufficientData(
            f"{counted(len(sizes), 'class', 'classes')} of at most {counted(max(sizes, default=0), 'item')} do not "
            f"give two tasks of {counted(way, 'way')} and {counted(shot, 'shot')}: lower the way or the shots"
        )
    best = min(widths, key=lambda query: (widths[query], query))
    near = [query for query, width in widths.items() if width <= NEAR * widths[best]]
    curve = tuple(points[query] for query in sorted({*queries, best}))
    return replace(made, query=best, curve=curve, near=(min(near), max(near)))


def available_tasks(sizes: Sequence[int], way: int, need: int) -> int:
    """How many tasks of `need` items per class the sampler `depletion` gives on average."""
    slots = [size // need for size in sizes]
    seeds = range(10 if sum(slots) < 1000 * way else 1)  # among many tasks the luck of the draw does not show
    return round(np.mean([len(draw_classes(slots, way, seed)[0]) for seed in seeds]))


def _point(variance: TaskVariance, query: int, tasks: int, level: float) -> PlannedTasks:
    deviation = math.sqrt(variance.at(query))
    if tasks < 2:
        return PlannedTasks(query, deviation, tasks, None)
    freedom = tasks - 1
    # A standard deviation over few tasks is too small on average, by this factor.
    short = math.sqrt(2 / freedom) * math.exp(special.gammaln(tasks / 2) - special.gammaln(freedom / 2))
    half = special.stdtrit(freedom, (1 + level) / 2) * short * deviation / math.sqrt(tasks)
    return PlannedTasks(query, deviation, tasks, float(half))


def _candidates(sizes: Sequence[int], way: int, shot: int) -> list[int]:
    """Numbers of queries to try: each up to 20, then in steps of a tenth, as long as `way` classes have the items."""
    most = sorted(sizes, reverse=True)[way - 1] - shot if len(sizes) >= way else 0
    tried, query = list[int](), 1
    while query <= most:
        tried.append(query)
        query += max(1, query // 10 if query >= 20 else 1)
    return tried


def _sizes(items: int | Sequence[int], classes: int | None) -> list[int]:
    if isinstance(items, int):
        if classes is None:
            raise InputError("classes: expected their number, because items is one number for all of them")
        items = [items] * COUNT.check("classes", classes)
    sizes = [int(size) for size in items]
    if classes not in (None, len(sizes)):
        raise InputError(f"items: expected {classes} numbers, one per class, found {len(sizes)}")
    if min(sizes, default=0) < 0:
        raise InputError(f"items: expected no number below 0, found {min(sizes)}")
    if sum(sizes) > MOST:
        raise InputError(f"items: expected at most {MOST:,} in all classes together, found {sum(sizes):,}")
    return sizes


def _require_moments(moments: ScoreMoments) -> None:
    if not (0 <= moments.m2 <= moments.m1 <= 1 and 0 <= moments.m3 <= 1):
        raise InputError(
            f"moments: expected 0 <= m2 <= m1 <= 1 and 0 <= m3 <= 1, found m1 {moments.m1:g}, m2 {moments.m2:g}, "
            f"m3 {moments.m3:g}"
        )
