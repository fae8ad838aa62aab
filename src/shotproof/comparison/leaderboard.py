"""The leaderboard: classifiers on the same task sets, with ranks as far as the interval tells."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from shotproof.comparison.card import AxisTasks
from shotproof.comparison.dominance import Comparable, above
from shotproof.comparison.leaderboard_rows import (
    AGREEING,
    AND,
    QUANTITIES,
    SAMPLER,
    Measured,
    Quantity,
    Slot,
    What,
)
from shotproof.core.arrays import BoolArray
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.nouns import counted
from shotproof.results.evaluated import METRICS, Classifier, Metric
from shotproof.results.metrics import rank_correlation
from shotproof.stats.intervals import Covers, Estimate, Interval, check_intervals, check_level
from shotproof.stats.ranks import RankRange, ranges_of, with_implied

IMAGES: Covers = "images"


@dataclass(frozen=True)
class BoardAxis:
    """What classifiers are measured on.

    name: with the size of tasks, where that tells axes apart
    """

    slot: Slot
    sets: AxisTasks
    name: str
    medium: str | None = None

    @property
    def data_set(self) -> str:
        """The name of the data, with its split."""
        return f"{self.slot.data_set} ({self.slot.split})" if self.slot.split else self.slot.data_set


@dataclass(frozen=True)
class Column:
    """One number of every classifier that is measured on an axis, by its place among all.

    axis: its place among the leaderboard's
    covers: what the intervals and ranks are by
    intervals: None of those that are not measured
    ranks: from behind all that are conclusively better to before all that are conclusively worse; None without an
        interval
    """

    axis: int
    quantity: Quantity
    metric: Metric
    covers: Covers
    intervals: tuple[Interval | None, ...]
    ranks: tuple[RankRange | None, ...]


@dataclass(frozen=True)
class BoardEntry:
    """A classifier, the files that tell of it, and what its card says of each axis, by the axis's place."""

    classifier: Classifier
    files: tuple[str, ...]
    told: Mapping[int, tuple[str, str]]


@dataclass(frozen=True)
class Leaderboard:
    """Classifiers on the same task sets.

    covers: the intervals that most columns are by; those of other columns are their own
    level: of the intervals
    metric: what is shown first
    beaten: by the places of two columns of one data set and metric, whom another is conclusively better than in both
    correlations: likewise Spearman's correlation, NaN where it cannot be computed
    notes: what was left out, and why
    """

    covers: Covers
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
        """The names of the data."""
        return list(dict.fromkeys(one.data_set for one in self.axes))

    def __repr__(self) -> str:
        on = ", ".join(self.data_sets)
        return f"<Leaderboard of {counted(len(self.entries), 'classifier')} on {on}: {self.covers} intervals>"


def make_leaderboard(
    measured: Sequence[Measured],
    *,
    interval: str | None = None,
    level: float = 0.95,
    metric: Metric = "acc",
    tasks: Collection[str] = (),
) -> Leaderboard:
    """Rank classifiers on every axis.

    Args:
        measured: what files tell, card by card and results by results
        interval: that ranks are by; by default, on each axis, `images` where every number has it, else `sampler`
        level: of the intervals
        metric: what is shown first
        tasks: the digests of the task sets that count; none: those that most classifiers are measured on

    Returns:
        The leaderboard; classifiers in the order of their names.

    Raises:
        Mismatch: a file is on other task sets, or two files tell different things of one classifier.
        InputError: nothing is measured, or the interval is unknown.
    """
    check_level(level)
    if not measured:
        raise InputError("no classifier: expected cards (card.json) and results (Parquet)")
    measured, notes = _on_same_tasks(_same_slots(measured), tasks)
    axes = _axes(measured)
    places = {axis.slot: place for place, axis in enumerate(axes)}
    classifiers = sorted({one.classifier for one in measured})
    by_place: dict[tuple[Classifier, int], list[Measured]] = {}
    for one in measured:
        by_place.setdefault((one.classifier, places[one.slot]), []).append(one)
    for of_one in by_place.values():
        _require_agreement(of_one)
    asked = None if interval is None else check_intervals([interval])[0]
    columns: list[Column] = []
    better: list[npt.NDArray[np.uint8]] = []  # as bits: of thousands, all pairs in all columns are many
    for place, axis in enumerate(axes):
        covers = asked or _covers([one for one in measured if one.slot == axis.slot])
        for what in ((quantity, by) for by in METRICS for quantity in QUANTITIES):
            found = [_number(by_place.get((one, place), ()), what, covers) for one in classifiers]
            if any(found):
                column, ahead = _column(place, what, found, covers, level)
                columns.append(column)
                better.append(np.packbits(ahead, axis=1))
    if all(rank is None for column in columns for rank in column.ranks):
        raise InputError(f"no {asked or SAMPLER} interval can be given: {_first_reason(columns)}")
    pairs = [
        (a, b)
        for a, b in combinations(range(len(columns)), 2)
        if axes[columns[a].axis].data_set == axes[columns[b].axis].data_set and columns[a].metric == columns[b].metric
    ]
    return Leaderboard(
        Counter(one.covers for one in columns).most_common(1)[0][0],
        level,
        metric,
        tuple(axes),
        tuple(_entry(one, len(axes), by_place) for one in classifiers),
        tuple(columns),
        {(a, b): np.any(better[a] & better[b], axis=1) for a, b in pairs},
        {(a, b): _correlation(columns[a], columns[b]) for a, b in pairs},
        tuple(notes),
    )


def _same_slots(measured: Sequence[Measured]) -> list[Measured]:
    """With one name for what has one digest: results tell variants of a sampler apart, cards do not.

    A card that has an axis for each of two names of the same tasks is taken by the first.
    """
    known: dict[str, Slot] = {}
    for one in sorted(measured, key=lambda one: one.told is not None):  # results first
        known.setdefault(one.sets.tasks.digest, one.slot)
    named = [one if one.told is None else replace(one, slot=known[one.sets.tasks.digest]) for one in measured]
    first = {(one.classifier, one.file, one.slot): one for one in reversed(named)}
    return [one for one in named if one.told is None or first[one.classifier, one.file, one.slot] is one]


def _on_same_tasks(measured: Sequence[Measured], tasks: Collection[str]) -> tuple[list[Measured], list[str]]:
    """What is on the task sets that count, and notes on what is left out.

    Tasks that are searched in features differ by encoder, and are left out; whoever else is on others is refused.
    """
    kept: list[Measured] = []
    notes = []
    by_slot: dict[Slot, list[Measured]] = {}
    for one in sorted(measured, key=lambda one: one.file):
        by_slot.setdefault(one.slot, []).append(one)
    for slot, given in by_slot.items():
        counts = Counter(one.sets.tasks.digest for one in given)
        agreed = next((one for one in counts if set(one.split(AND)) <= set(tasks)), None)
        expected = agreed or (None if tasks else counts.most_common(1)[0][0])
        of_set = [one for one in given if one.sets.tasks.digest == expected]
        others = [one for one in given if one.sets.tasks.digest != expected]
        refused = next((one for one in others if one.sets.tasks.searched_in is None), None)
        if refused is not None:
            raise Mismatch(_on_others(refused, expected, of_set))
        if others:
            among = len({one.classifier for one in others})
            notes.append(
                f"{slot.name}: {among} of {len({one.classifier for one in given})} classifiers are left out, their "
                "tasks were searched in other features"
            )
        if of_set:
            alike, note = _with_same_references(of_set)
            kept += alike
            notes += [note] if note else []
    if not kept:
        raise Mismatch("no classifier is on the task sets of the folder")
    return kept, notes


def _on_others(refused: Measured, expected: str | None, of_set: Sequence[Measured]) -> str:
    of_data = refused.slot.data_set or "the data"
    own = f"{refused.file}: {refused.classifier} is on other {refused.slot.name} tasks of {of_data}"
    if expected is None:
        return f"{own}, {refused.sets.tasks.digest}, than the folder's task files: evaluate it on these"
    return (
        f"{own}, {refused.sets.tasks.digest}; expected {expected}, as {of_set[0].file} has: evaluate it on the same "
        "task file, or move it to another folder"
    )


def _with_same_references(given: Sequence[Measured]) -> tuple[list[Measured], str | None]:
    """Without skill that is lost against another reference, or without a placebo that others have; and a note on it."""

    def of(one: Measured) -> tuple[str | None, ...]:
        return tuple(None if each is None else each.digest for each in (one.sets.reference, one.sets.placebo))

    # A placebo tells more than none.
    counts = Counter(of(one) for one in given)
    usual = max(counts, key=lambda key: (counts[key], key[1] is not None, key[0] is not None))
    others = [one for one in given if of(one) != usual]
    bare = [
        replace(one, numbers={what: number for what, number in one.numbers.items() if what[0] == "accuracy"})
        for one in others
    ]
    among = len({one.classifier for one in others} - {one.classifier for one in given if of(one) == usual})
    note = (
        f"{given[0].slot.name}: no skill lost of {counted(among, 'classifier')}, whose reference or placebo is another"
    )
    # The first has the sets that count.
    return [*(one for one in given if of(one) == usual), *bare], note if among else None


def _axes(measured: Sequence[Measured]) -> list[BoardAxis]:
    """Data set by data set: random tasks from few shots to many, then what stresses."""
    first: dict[Slot, Measured] = {}
    for one in measured:
        first.setdefault(one.slot, one)
    names = Counter((slot.data_set, slot.split, slot.name) for slot in first)
    axes = []
    for slot, one in first.items():
        name = slot.name
        if names[slot.data_set, slot.split, slot.name] > 1:
            dial = "" if slot.dial is None else f", a = {slot.dial:g}"
            name = f"{name}, {slot.way}-way {slot.shot}-shot, {counted(slot.query, 'query', 'queries')}{dial}"
        axes.append(BoardAxis(slot, one.sets, name, one.medium))
    return sorted(axes, key=lambda one: (one.data_set, one.sets.reference is not None, one.slot.shot, one.name))


def _require_agreement(given: Sequence[Measured]) -> None:
    """Refuse two files that tell different things of one classifier; a card beside its own results is welcome."""
    first = given[0]
    for other in given[1:]:
        one, two = ([_mean(each, ("accuracy", metric)) for metric in METRICS] for each in (first, other))
        if (first.told is None) == (other.told is None) or not np.allclose(
            one, two, rtol=0, atol=AGREEING, equal_nan=True
        ):
            told = f"{one[0]:.1f}% and {two[0]:.1f}%"
            raise Mismatch(
                f"{first.file} and {other.file} are both of {first.classifier} on {first.slot.name} ({told}): expected "
                "one file, or a name of its own for each"
            )


def _mean(one: Measured, what: What) -> float:
    return next((number.estimate.mean for number in one.numbers.get(what, {}).values()), math.nan)


def _covers(measured: Sequence[Measured]) -> Covers:
    """`images` where every number that there is has it."""
    numbers = [number for one in measured for number in one.numbers.values()]
    everywhere = all(IMAGES in one for one in numbers if any(each.can_be_ranked for each in one.values()))
    return IMAGES if everywhere else SAMPLER


def _number(given: Sequence[Measured], what: What, covers: Covers) -> Comparable | None:
    """Of a card and results, what has the interval; results first, for they are compared task by task."""
    known = [one.numbers[what] for one in given if what in one.numbers]
    having = [one[covers] for one in known if covers in one]
    if having:
        return max(having, key=lambda one: bool(one.by_task))
    other = next((one for number in known for one in number.values()), None)
    if other is None:
        return None
    kinds = ", ".join(dict.fromkeys(kind for number in known for kind in number))
    return Comparable(Estimate(other.estimate.mean, None, f"no {covers} interval, only {kinds}"))


def _column(
    axis: int, what: What, numbers: Sequence[Comparable | None], covers: Covers, level: float
) -> tuple[Column, BoolArray]:
    """A column, and of all classifiers [n, n] whether that of the second place is conclusively better."""
    quantity, metric = what
    ranked = [place for place, one in enumerate(numbers) if one is not None and one.can_be_ranked]
    given = [one for place in ranked if (one := numbers[place]) is not None]
    higher, means = above(given, level), np.array([one.estimate.mean for one in given])
    # Of skill that is lost, the least is best.
    ahead = with_implied(higher.T, means) if quantity == "accuracy" else with_implied(higher, -means)
    ranks: list[RankRange | None] = [None] * len(numbers)
    for place, rank in zip(ranked, ranges_of(ahead), strict=True):
        ranks[place] = rank
    among_all = np.zeros((len(numbers),) * 2, dtype=np.bool_)
    among_all[np.ix_(ranked, ranked)] = ahead
    intervals = tuple(None if one is None else one.estimate.interval(covers, level) for one in numbers)
    return Column(axis, quantity, metric, covers, intervals, tuple(ranks)), among_all


def _correlation(first: Column, second: Column) -> float:
    both = [
        (a.mean, b.mean)
        for a, b in zip(first.intervals, second.intervals, strict=True)
        if a is not None and b is not None and not math.isnan(a.mean + b.mean)
    ]
    return rank_correlation([a for a, _ in both], [b for _, b in both])


def _entry(
    classifier: Classifier, axes: int, by_place: Mapping[tuple[Classifier, int], Sequence[Measured]]
) -> BoardEntry:
    of_one = {place: by_place[classifier, place] for place in range(axes) if (classifier, place) in by_place}
    files = sorted({one.file for given in of_one.values() for one in given})
    told = {place: one.told for place, given in of_one.items() for one in given if one.told is not None}
    return BoardEntry(classifier, tuple(files), told)


def _first_reason(columns: Sequence[Column]) -> str:
    reasons = (one.refused for column in columns for one in column.intervals if one is not None and one.refused)
    return next(reasons, "there is no number")
