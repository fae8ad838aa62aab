"""Leaderboard of classifiers on the same task sets, with ranges of ranks as wide as the interval requires."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from shotproof.comparison.card import AxisTasks, CardRemedy
from shotproof.comparison.card_remedies import merge_remedies
from shotproof.comparison.dominance import Comparable, above
from shotproof.comparison.leaderboard_rows import (
    QUANTITIES,
    SAMPLER,
    SEEDS_SEPARATOR,
    TOLERANCE,
    AxisKey,
    Measurement,
    NumberKey,
    Quantity,
)
from shotproof.core.arrays import BoolArray
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.nouns import counted
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.metrics import rank_correlation
from shotproof.stats.intervals import Estimate, Interval, IntervalName, check_intervals, check_level
from shotproof.stats.ranks import RankRange, ranges_of, with_implied

IMAGES: IntervalName = "images"


@dataclass(frozen=True)
class BoardAxis:
    """Axis that classifiers are measured on.

    key: identity of the axis
    sets: its task set, with the reference and the placebo
    name: display name, with the size of the tasks if other axes have the same name
    """

    key: AxisKey
    sets: AxisTasks
    name: str
    medium: str | None = None

    @property
    def data_set(self) -> str:
        """Return the name of the data, with its split."""
        return f"{self.key.data_set} ({self.key.split})" if self.key.split else self.key.data_set


@dataclass(frozen=True)
class Column:
    """One number of every classifier on one axis, in the order of the leaderboard's entries.

    axis: index of the axis
    interval_name: name of the interval of the numbers and the ranks
    intervals: numbers with their intervals; None for classifiers that were not measured
    ranks: from behind all that are conclusively better to before all that are conclusively worse; None without an
        interval
    """

    axis: int
    quantity: Quantity
    metric: Metric
    interval_name: IntervalName
    intervals: tuple[Interval | None, ...]
    ranks: tuple[RankRange | None, ...]


@dataclass(frozen=True)
class BoardEntry:
    """Classifier of a leaderboard.

    files: the files that its numbers come from
    statements: verdict and advice of its card, by index of the axis
    remedies: remedies that it was measured with
    """

    classifier: Classifier
    files: tuple[str, ...]
    statements: Mapping[int, tuple[str, str]]
    remedies: tuple[CardRemedy, ...] = ()


@dataclass(frozen=True)
class Leaderboard:
    """Classifiers on the same task sets.

    interval_name: name of the interval of most columns; other columns name their own
    level: level of the intervals
    metric: metric to show first
    beaten: for two columns of one data set and metric, by their indices: whether another classifier is conclusively
        better than this one in both
    correlations: Spearman's correlation of the same two columns; NaN if it cannot be computed
    notes: what was left out, and why
    """

    interval_name: IntervalName
    level: float
    metric: Metric
    axes: tuple[BoardAxis, ...]
    entries: tuple[BoardEntry, ...]
    columns: tuple[Column, ...]
    beaten: Mapping[tuple[int, int], BoolArray]
    correlations: Mapping[tuple[int, int], float]
    notes: tuple[str, ...] = ()

    @property
    def data_sets(self) -> list[str]:
        """Return the names of the data sets."""
        return list(dict.fromkeys(axis.data_set for axis in self.axes))

    def __repr__(self) -> str:
        data_sets = ", ".join(self.data_sets)
        classifiers = counted(len(self.entries), "classifier")
        return f"<Leaderboard of {classifiers} on {data_sets}: {self.interval_name} intervals>"


def make_leaderboard(
    measurements: Sequence[Measurement],
    *,
    interval: str | None = None,
    level: float = 0.95,
    metric: Metric = "acc",
    tasks: Collection[str] = (),
) -> Leaderboard:
    """Rank classifiers on every axis.

    Args:
        measurements: measurements from all cards and results
        interval: name of the interval of the ranks; by default, on each axis, `images` if every number has it, else
            `sampler`
        level: level of the intervals
        metric: metric to show first
        tasks: digests of the task sets to rank on; by default those that most classifiers are measured on

    Returns:
        The leaderboard; classifiers in the order of their names.

    Raises:
        Mismatch: if a file is on other task sets, or two files disagree about a classifier.
        InputError: if nothing is measured, or the interval is unknown.
    """
    check_level(level)
    if not measurements:
        raise InputError("no classifier: expected cards (card.json) and results (Parquet)")
    measurements, notes = _select_same_tasks(_unify_axis_keys(measurements), tasks)
    axes = _board_axes(measurements)
    indices = {axis.key: index for index, axis in enumerate(axes)}
    classifiers = sorted({measurement.classifier for measurement in measurements})
    by_axis: dict[tuple[Classifier, int], list[Measurement]] = {}
    for measurement in measurements:
        by_axis.setdefault((measurement.classifier, indices[measurement.axis]), []).append(measurement)
    for rows in by_axis.values():
        _require_agreement(rows)
    requested = None if interval is None else check_intervals([interval])[0]
    columns: list[Column] = []
    better: list[npt.NDArray[np.uint8]] = []  # packed as bits, because the pairs of thousands of classifiers are many
    for index, axis in enumerate(axes):
        interval_name = requested or _shared_interval([row for row in measurements if row.axis == axis.key])
        for number_key in ((quantity, by_metric) for by_metric in METRICS for quantity in QUANTITIES):
            numbers = [
                _number(by_axis.get((classifier, index), ()), number_key, interval_name) for classifier in classifiers
            ]
            if any(numbers):
                column, ahead = _rank_column(index, number_key, numbers, interval_name, level)
                columns.append(column)
                better.append(np.packbits(ahead, axis=1))
    if all(rank is None for column in columns for rank in column.ranks):
        raise InputError(f"no {requested or SAMPLER} interval is available: {_first_reason(columns)}")
    pairs = [
        (a, b)
        for a, b in combinations(range(len(columns)), 2)
        if axes[columns[a].axis].data_set == axes[columns[b].axis].data_set and columns[a].metric == columns[b].metric
    ]
    return Leaderboard(
        Counter(column.interval_name for column in columns).most_common(1)[0][0],
        level,
        metric,
        tuple(axes),
        tuple(_board_entry(classifier, axes, by_axis) for classifier in classifiers),
        tuple(columns),
        {(a, b): np.any(better[a] & better[b], axis=1) for a, b in pairs},
        {(a, b): _correlation(columns[a], columns[b]) for a, b in pairs},
        tuple(notes),
    )


def _unify_axis_keys(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Give the same key to measurements on the same tasks: results distinguish variants of a sampler, cards do not.

    If a card has two axes on the same tasks, the first counts.
    """
    keys: dict[str, AxisKey] = {}
    for measurement in sorted(measurements, key=lambda row: row.statements is not None):  # results first
        keys.setdefault(measurement.sets.tasks.digest, measurement.axis)
    unified = [
        row if row.statements is None else replace(row, axis=keys[row.sets.tasks.digest]) for row in measurements
    ]
    first = {(row.classifier, row.file, row.axis): row for row in reversed(unified)}
    return [row for row in unified if row.statements is None or first[row.classifier, row.file, row.axis] is row]


def _select_same_tasks(
    measurements: Sequence[Measurement], tasks: Collection[str]
) -> tuple[list[Measurement], list[str]]:
    """Select the measurements on the task sets to rank on, with notes on what is left out.

    Tasks that are searched in features differ between encoders: other ones are left out. Any other task set that
    differs raises Mismatch.
    """
    selected: list[Measurement] = []
    notes = []
    by_key: dict[AxisKey, list[Measurement]] = {}
    for measurement in sorted(measurements, key=lambda row: row.file):
        by_key.setdefault(measurement.axis, []).append(measurement)
    for key, on_axis in by_key.items():
        counts = Counter(row.sets.tasks.digest for row in on_axis)
        accepted = next((digest for digest in counts if set(digest.split(SEEDS_SEPARATOR)) <= set(tasks)), None)
        expected = accepted or (None if tasks else counts.most_common(1)[0][0])
        matching = [row for row in on_axis if row.sets.tasks.digest == expected]
        others = [row for row in on_axis if row.sets.tasks.digest != expected]
        mismatched = next((row for row in others if row.sets.tasks.searched_in is None), None)
        if mismatched is not None:
            raise Mismatch(_mismatch_message(mismatched, expected, matching))
        if others:
            count, total = (len({row.classifier for row in rows}) for rows in (others, on_axis))
            notes.append(
                f"{key.name}: {count} of {total} classifiers {'is' if count == 1 else 'are'} left out, because of "
                "tasks that were searched in other features"
            )
        if matching:
            comparable, note = _drop_other_references(matching)
            selected += comparable
            notes += [note] if note else []
    if not selected:
        raise Mismatch("no classifier is on the task sets of the folder")
    return selected, notes


def _mismatch_message(mismatched: Measurement, expected: str | None, matching: Sequence[Measurement]) -> str:
    data = mismatched.axis.data_set or "the data"
    description = f"{mismatched.file}: {mismatched.classifier} is on other {mismatched.axis.name} tasks of {data}"
    if expected is None:
        return f"{description}, {mismatched.sets.tasks.digest}, than the folder's task files: evaluate it on these"
    return (
        f"{description}, {mismatched.sets.tasks.digest}; expected {expected}, as {matching[0].file} has: evaluate it "
        "on the same task file, or move it to another folder"
    )


def _drop_other_references(measurements: Sequence[Measurement]) -> tuple[list[Measurement], str | None]:
    """Drop the skill lost of measurements with an uncommon reference or placebo, and write a note on it."""

    def references(measurement: Measurement) -> tuple[str | None, ...]:
        sets = (measurement.sets.reference, measurement.sets.placebo)
        return tuple(None if task_set is None else task_set.digest for task_set in sets)

    # If equally many classifiers have a placebo and none, the placebo shows more.
    counts = Counter(references(row) for row in measurements)
    usual = max(counts, key=lambda key: (counts[key], key[1] is not None, key[0] is not None))
    matching = [row for row in measurements if references(row) == usual]
    others = [row for row in measurements if references(row) != usual]
    accuracies = [
        replace(row, numbers={key: number for key, number in row.numbers.items() if key[0] == "accuracy"})
        for row in others
    ]
    count = len({row.classifier for row in others} - {row.classifier for row in matching})
    classifiers = counted(count, "classifier")
    note = (
        f"{measurements[0].axis.name}: the skill lost of {classifiers} is left out, because of another reference or "
        "placebo"
    )
    # The axis takes its task sets from the first one.
    return [*matching, *accuracies], note if count else None


def _board_axes(measurements: Sequence[Measurement]) -> list[BoardAxis]:
    """Return the axes by data set: random tasks from few shots to many, then tasks that have a reference."""
    first: dict[AxisKey, Measurement] = {}
    for measurement in measurements:
        first.setdefault(measurement.axis, measurement)
    names = Counter((key.data_set, key.split, key.name) for key in first)
    axes = []
    for key, measurement in first.items():
        name = key.name
        if names[key.data_set, key.split, key.name] > 1:
            dial = "" if key.dial is None else f", a = {key.dial:g}"
            name = f"{name}, {key.way}-way {key.shot}-shot, {counted(key.query, 'query', 'queries')}{dial}"
        axes.append(BoardAxis(key, measurement.sets, name, measurement.medium))
    return sorted(axes, key=lambda axis: (axis.data_set, axis.sets.reference is not None, axis.key.shot, axis.name))


def _require_agreement(measurements: Sequence[Measurement]) -> None:
    """Raise Mismatch if files disagree about a classifier; a card may be there together with its own results."""
    first = measurements[0]
    for other in measurements[1:]:
        accuracies, others = ([_mean(row, ("accuracy", metric)) for metric in METRICS] for row in (first, other))
        same_kind = (first.statements is None) == (other.statements is None)
        if same_kind or not np.allclose(accuracies, others, rtol=0, atol=TOLERANCE, equal_nan=True):
            both = f"{accuracies[0]:.1f}% and {others[0]:.1f}%"
            raise Mismatch(
                f"{first.file} and {other.file} are both of {first.classifier} on {first.axis.name} ({both}): expected "
                "one file per classifier: remove one of them, or give the classifiers different names"
            )


def _mean(measurement: Measurement, key: NumberKey) -> float:
    return next((number.estimate.mean for number in measurement.numbers.get(key, {}).values()), math.nan)


def _shared_interval(measurements: Sequence[Measurement]) -> IntervalName:
    """Return `images` if every number that can be ranked has this interval, else `sampler`."""
    numbers = [by_interval for row in measurements for by_interval in row.numbers.values()]
    ranked = [row for row in numbers if any(number.can_be_ranked for number in row.values())]
    return IMAGES if all(IMAGES in by_interval for by_interval in ranked) else SAMPLER


def _number(measurements: Sequence[Measurement], key: NumberKey, interval_name: IntervalName) -> Comparable | None:
    """Return the number with this interval; of a card and results, the one that can be compared task by task."""
    available = [row.numbers[key] for row in measurements if key in row.numbers]
    with_interval = [by_interval[interval_name] for by_interval in available if interval_name in by_interval]
    if with_interval:
        return max(with_interval, key=lambda number: bool(number.by_task))
    other = next((number for by_interval in available for number in by_interval.values()), None)
    if other is None:
        return None
    kinds = ", ".join(dict.fromkeys(kind for by_interval in available for kind in by_interval))
    return Comparable(Estimate(other.estimate.mean, None, f"no {interval_name} interval, only {kinds}"))


def _rank_column(
    axis: int, key: NumberKey, numbers: Sequence[Comparable | None], interval_name: IntervalName, level: float
) -> tuple[Column, BoolArray]:
    """Rank the classifiers by one number.

    Returns:
        The column, and for all classifiers [n, n] whether that of the column is conclusively better than that of the
        row.
    """
    quantity, metric = key
    ranked = [index for index, number in enumerate(numbers) if number is not None and number.can_be_ranked]
    comparable = [number for index in ranked if (number := numbers[index]) is not None]
    higher, means = above(comparable, level), np.array([number.estimate.mean for number in comparable])
    # The smallest skill lost is the best.
    ahead = with_implied(higher.T, means) if quantity == "accuracy" else with_implied(higher, -means)
    ranks: list[RankRange | None] = [None] * len(numbers)
    for index, rank in zip(ranked, ranges_of(ahead), strict=True):
        ranks[index] = rank
    among_all = np.zeros((len(numbers),) * 2, dtype=np.bool_)
    among_all[np.ix_(ranked, ranked)] = ahead
    intervals = tuple(None if number is None else number.estimate.interval(interval_name, level) for number in numbers)
    return Column(axis, quantity, metric, interval_name, intervals, tuple(ranks)), among_all


def _correlation(first: Column, second: Column) -> float:
    both = [
        (a.mean, b.mean)
        for a, b in zip(first.intervals, second.intervals, strict=True)
        if a is not None and b is not None and not math.isnan(a.mean + b.mean)
    ]
    return rank_correlation([a for a, _ in both], [b for _, b in both])


def _board_entry(
    classifier: Classifier, axes: Sequence[BoardAxis], by_axis: Mapping[tuple[Classifier, int], Sequence[Measurement]]
) -> BoardEntry:
    on_axes = {index: by_axis[classifier, index] for index in range(len(axes)) if (classifier, index) in by_axis}
    files = sorted({row.file for rows in on_axes.values() for row in rows})
    statements = {
        index: row.statements for index, rows in on_axes.items() for row in rows if row.statements is not None
    }
    remedies = merge_remedies(
        remedy if remedy.family == "features" else replace(remedy, axes=(axes[index].name,))
        for index, rows in on_axes.items()
        for row in rows
        for remedy in row.remedies
    )
    return BoardEntry(classifier, tuple(files), statements, remedies)


def _first_reason(columns: Sequence[Column]) -> str:
    numbers = (interval for column in columns for interval in column.intervals if interval is not None)
    return next((interval.refused for interval in numbers if interval.refused), "there is no number")
