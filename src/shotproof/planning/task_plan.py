"""Plans for the numbers of queries and tasks, from three moments (*Oops, I Sampled it Again*, section 4, appendix A).

Given a task's K classes and its support set, let mu_c be the expected accuracy on new queries of class c. Over tasks,

    m1 = E[mu_c],    m2 = E[mu_c^2],    m3 = sum over pairs c != c' of E[mu_c mu_c'] / K^2

(m1 and m2 are also means over c). For a task's accuracy A_t on Q queries per class, E[A_t^2] is a sum over all pairs of
queries: the same query, K Q times; two of one class, K Q (Q - 1) times; two of different classes. Hence

    Var(A_t) = m1 / (K Q) + (Q - 1) / (K Q) m2 + m3 - m1^2 = alpha + noise / Q,
    alpha = m2 / K + m3 - m1^2,    noise = (m1 - m2) / K.

m3 contains the factor (K - 1) / K of "two different classes"; the formula would need it if m3 were a mean over pairs.
alpha is the variance of a task's expected accuracy, so it is never negative except for estimation error. Data of C
classes with N items each give about C N / (K (Q + S)) tasks without replacement, so the variance of their mean is

    Var = K / (N C) (alpha Q + beta / Q + gamma),    beta = S noise,    gamma = S alpha + noise,

which is smallest at Q = sqrt(beta / alpha): this grows with the shots S and does not depend on N. Moments, alpha, beta
and gamma refer to accuracies from 0 to 1, as in the paper; all results are in percentage points.
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
ROUNDING = 1e-8  # a variance below this, in squared points, counts as zero
NEAR = 1.05  # an interval that is at most wider by this factor is as good as the narrowest
# Best numbers of queries in *Oops, I Sampled it Again* (section 4), by shots: read from curves of several data sets.
PUBLISHED = {1: 1, 5: 5, 10: 7}


@dataclass(frozen=True)
class TaskVariance:
    """Variance of a task's accuracy, or of a paired difference, with Q queries per class: alpha + noise / Q."""

    alpha: float
    noise: float

    def at(self, query: int) -> float:
        """Compute the variance with Q queries per class, in squared points; a negative alpha counts as 0."""
        return 1e4 * (max(self.alpha, 0.0) + self.noise / query)

    def beta(self, shot: int) -> float:
        """Return the factor of 1 / Q in the variance of the mean."""
        return shot * self.noise

    def gamma(self, shot: int) -> float:
        """Return the part of the variance of the mean that does not depend on Q."""
        return shot * self.alpha + self.noise

    def best_query(self, shot: int) -> float:
        """Compute the Q with the smallest variance of the mean; infinite if alpha is not above 0."""
        return math.sqrt(self.beta(shot) / self.alpha) if self.alpha > 0 else math.inf


@dataclass(frozen=True)
class ScoreMoments:
    """Moments as defined at the top of this module. The last two belong to estimates; None if the moments are known.

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
        """Compute the variance of a task's accuracy as a function of the number of queries."""
        m1_squared = self.m1**2 if self.m1_squared is None else self.m1_squared
        square = self.m1 if self.score_squared is None else self.score_squared
        return TaskVariance(alpha=self.m2 / way + self.m3 - m1_squared, noise=(square - self.m2) / way)


def estimate_moments(
    scores: npt.ArrayLike, queries: npt.ArrayLike, score_squares: npt.ArrayLike | None = None
) -> ScoreMoments:
    """Estimate the moments from a pilot, without bias.

    With Q queries in every class, `variance(way).at(Q)` is the sample variance.

    Args:
        scores: sums of the queries' scores, [tasks, way]: for an accuracy the number of correct answers, for a paired
            difference one method's number minus the other's
        queries: numbers of queries, [tasks, way]
        score_squares: for a paired difference, number of queries that exactly one of the two methods answered
            correctly, [tasks, way]

    Returns:
        The moments.

    Raises:
        InputError: the shapes differ, there are fewer than two tasks, or a class has fewer than two queries.

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
        raise InputError(f"pilot: expected at least 2 tasks, better 200, to see how much tasks vary, found {tasks}")
    if n.min() < 2:
        raise InputError(
            f"pilot: expected at least 2 queries in every class, found {n.min():g}; with 1 query, the noise of queries "
            "cannot be separated from the differences between classes"
        )
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
    """Expected results of tasks drawn without replacement with `query` queries per class, in points.

    `deviation` is the standard deviation of a task's accuracy, `tasks` the number of tasks that the data allow, and
    `half_width` the expected half-width of the mean's interval (Student's t); None if there are fewer than two tasks.
    """

    query: int
    deviation: float
    tasks: int
    half_width: float | None


@dataclass(frozen=True)
class Plan:
    """Expected intervals at several numbers of queries, and the best number.

    `best_query` is sqrt(beta / alpha), infinite if alpha is not above 0. `query` is the whole number with the narrowest
    interval on this data; unlike the formula, it takes into account that the number of tasks is whole and that
    Student's t is wide for few tasks. `near` are the lowest and the highest number with an interval at most 5% wider.
    If the data are unknown, both are None and the curve is empty.
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
        """Explain in sentences why the narrowest interval, sqrt(beta / alpha) and the paper's number may differ."""
        sentences = []
        if self.query is not None and self.near is not None:
            low, high = self.near
            if low < high:
                sentences.append(f"With {low} to {high} queries, intervals are at most 5% wider than the narrowest.")
            if not math.isinf(self.best_query) and self.query != max(round(self.best_query), 1):
                sentences.append(
                    f"The narrowest interval is at {self.query} queries, not at {self.best_query:.1f} as the formula "
                    "says: the formula ignores that the number of tasks is whole, and that Student's t is wider for "
                    "few tasks."
                )
        if self.shot in PUBLISHED:
            published = PUBLISHED[self.shot]
            sentences.append(
                f"The paper Oops, I Sampled it Again recommends about {counted(published, 'query', 'queries')} for "
                f"{counted(self.shot, 'shot')}{self._relate_to_range(published)}, read from flat curves of other data "
                "and features. The more the accuracy varies between tasks (alpha), the lower the best number; the "
                "noisier a single query (beta), the higher."
            )
        return sentences

    def _relate_to_range(self, published: int) -> str:
        """Say whether the paper's number is within the range of near-best numbers."""
        if self.near is None:
            return ""
        low, high = self.near
        return f", {'within' if low <= published <= high else 'outside'} this range" if low < high else ""

    def to_json(self) -> dict[str, Any]:
        """Convert the plan to plain values, half-widths in points."""
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
            "curve": [
                {"query": point.query, "tasks": point.tasks, "half_width": point.half_width} for point in self.curve
            ],
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
    """Plan the number of queries for tasks drawn without replacement.

    Args:
        moments: moments of tasks with the same way and shot
        shot: support items per class
        way: classes per task
        items: items of each class: one number for all `classes`, or one number per class; None if the data are unknown
        classes: number of classes in the data
        queries: numbers of queries to show; the best one is added
        level: confidence level of the intervals

    Returns:
        The best number of queries, and the expected interval for each number.

    Raises:
        InputError: a value cannot be used, or the accuracy does not vary.
        InsufficientData: the data do not allow two tasks.

    Example:
        >>> best = plan(ScoreMoments(m1=0.85, m2=0.74, m3=0.578), shot=5, way=5, classes=50, items=59)
        >>> round(best.best_query, 1), best.query
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
        raise InputError(
            f"the accuracy is {moments.m1:.1%} in every task: a plan needs results whose accuracy varies between tasks"
        )
    formula_plan = Plan(moments, variance, shot, way, level, variance.best_query(shot))
    if items is None:
        return formula_plan
    sizes = _sizes(items, classes)
    points = {
        query: _expect(variance, query, available_tasks(sizes, way, shot + query), level)
        for query in sorted({*queries, *_candidates(sizes, way, shot)})
    }
    widths = {query: point.half_width for query, point in points.items() if point.half_width is not None}
    if not widths:
        raise InsufficientData(
            f"{counted(len(sizes), 'class', 'classes')} of at most {counted(max(sizes, default=0), 'item')} are not "
            f"enough for two {way}-way {shot}-shot tasks: lower the way or the shots"
        )
    best = min(widths, key=lambda query: (widths[query], query))
    near = [query for query, width in widths.items() if width <= NEAR * widths[best]]
    curve = tuple(points[query] for query in sorted({*queries, best}))
    return replace(formula_plan, query=best, curve=curve, near=(min(near), max(near)))


def available_tasks(sizes: Sequence[int], way: int, need: int) -> int:
    """Compute the average number of tasks of `need` items per class that the sampler `depletion` draws."""
    slots = [size // need for size in sizes]
    seeds = range(10 if sum(slots) < 1000 * way else 1)  # with many tasks, the number hardly depends on the seed
    return round(np.mean([len(draw_classes(slots, way, seed)[0]) for seed in seeds]))


def _expect(variance: TaskVariance, query: int, tasks: int, level: float) -> PlannedTasks:
    """Compute the expected interval with this number of queries."""
    deviation = math.sqrt(variance.at(query))
    if tasks < 2:
        return PlannedTasks(query, deviation, tasks, None)
    freedom = tasks - 1
    # On average, a standard deviation over few tasks is too small by this factor.
    bias = math.sqrt(2 / freedom) * math.exp(special.gammaln(tasks / 2) - special.gammaln(freedom / 2))
    half_width = special.stdtrit(freedom, (1 + level) / 2) * bias * deviation / math.sqrt(tasks)
    return PlannedTasks(query, deviation, tasks, float(half_width))


def _candidates(sizes: Sequence[int], way: int, shot: int) -> list[int]:
    """List the numbers of queries to try: all up to 20, then in steps of a tenth, if `way` classes have the items."""
    most = sorted(sizes, reverse=True)[way - 1] - shot if len(sizes) >= way else 0
    candidates, query = list[int](), 1
    while query <= most:
        candidates.append(query)
        query += max(1, query // 10 if query >= 20 else 1)
    return candidates


def _sizes(items: int | Sequence[int], classes: int | None) -> list[int]:
    if isinstance(items, int):
        if classes is None:
            raise InputError("classes: expected the number of classes, because items is one number for all of them")
        items = [items] * COUNT.check("classes", classes)
    sizes = [int(size) for size in items]
    if classes not in (None, len(sizes)):
        raise InputError(f"items: expected {classes} numbers, one per class, found {len(sizes)}")
    if min(sizes, default=0) < 0:
        raise InputError(f"items: expected numbers of 0 or more, found {min(sizes)}")
    if sum(sizes) > MOST:
        raise InputError(f"items: expected at most {MOST:,} in total, found {sum(sizes):,}")
    return sizes


def _require_moments(moments: ScoreMoments) -> None:
    if not (0 <= moments.m2 <= moments.m1 <= 1 and 0 <= moments.m3 <= 1):
        raise InputError(
            f"moments: expected 0 <= m2 <= m1 <= 1 and 0 <= m3 <= 1, found m1 {moments.m1:g}, m2 {moments.m2:g}, "
            f"m3 {moments.m3:g}"
        )
