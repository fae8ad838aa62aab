"""The gate: a card held against limits. It fails where a limit is conclusively broken, and says where nobody can tell.

A limit is broken where the whole interval is beyond it, and kept where the whole interval is within it. In between,
nobody can tell, and how many more tasks would is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from shotproof.comparison.card import Card, CardAxis
from shotproof.comparison.dominance import Comparable, difference
from shotproof.comparison.numbers import bounds, level, percent
from shotproof.comparison.sentences import would_settle
from shotproof.core.errors import InputError, Mismatch, did_you_mean, placed
from shotproof.core.plain_values import typed
from shotproof.core.storage.files import read_toml
from shotproof.stats.intervals import Estimate, Interval, Spread, needed

Outcome = Literal["pass", "fail", "cannot tell"]
# What a classifier may rely on. Other tasks cost every classifier something, and need limits of their own.
RELIANCE = ("attributes", "contexts", "conditions")
SEARCHED = "difficulty"
MAX_DROP = 2.0  # points against another card, where nothing else is said: less is noise at the usual number of tasks


@dataclass(frozen=True)
class Limits:
    """The limits of an axis; None: none.

    max_skill_lost: percent of the accuracy above chance that may be lost, e.g. 15
    max_gap: points of accuracy that may be lost against the reference
    min_worst_class: percent that the worst class of a task must reach on average
    max_drop: points of accuracy that may be lost against another card
    """

    max_skill_lost: float | None = None
    max_gap: float | None = None
    min_worst_class: float | None = None
    max_drop: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"{name}: expected a number, found {value!r}")
        for name in ("max_skill_lost", "min_worst_class"):
            percent_of = self.given.get(name, 0.0)
            if not 0 <= percent_of <= 100:
                raise InputError(f"{name}: expected percent, from 0 to 100, found {percent_of:g}")

    @property
    def given(self) -> dict[str, float]:
        """Those that are set."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class _LimitsFile:
    """What a file of limits has beside limits of all axes."""

    axes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class GateLimits:
    """The limits of all axes, and of single ones, which go before these.

    Unless `only` names others, limits of all axes on skill lost and gap are for axes of attributes, contexts and
    conditions, which measure reliance; that on the worst class is for all axes but those of searched tasks.

    only: the axes that are looked at, by name or by what they stress; empty: all
    """

    everywhere: Limits = field(default_factory=Limits)
    of_axis: Mapping[str, Limits] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> GateLimits:
        """From a TOML file: limits, `only`, and tables `[axes.NAME]` with limits of single axes.

        Raises:
            InputError: it cannot be read, or has a key or value that cannot be.
        """
        what = f"limits file {path}"
        content = read_toml(Path(path), what)
        with placed(f"{what}: "):
            given: _LimitsFile = typed(content, _LimitsFile)
            own = {name: _limits(table, f"[axes.{name}], ") for name, table in given.axes.items()}
            everywhere = {key: value for key, value in content.items() if key not in ("axes", "only")}
            return cls(_limits(everywhere, ""), own, given.only)

    def with_flags(self, limits: Limits, only: Sequence[str] = ()) -> GateLimits:
        """With limits that go before those of all axes, and other axes to look at."""
        return replace(self, everywhere=replace(self.everywhere, **limits.given), only=tuple(only) or self.only)

    def of(self, axis: CardAxis) -> Limits:
        """Those of an axis: by its name, else by what it stresses."""
        return replace(self.everywhere, **{**dict.fromkeys(self.not_held(axis)), **self._own(axis).given})

    def not_held(self, axis: CardAxis) -> list[str]:
        """Return the limits of all axes that an axis is not held against, because nothing names it."""
        if self.only:
            return []
        own = self._own(axis).given
        unheld = [] if axis.axis in RELIANCE else ["max_skill_lost", "max_gap"]
        unheld += ["min_worst_class"] if axis.axis == SEARCHED else []
        return [name for name in unheld if name in self.everywhere.given and name not in own]

    def _own(self, axis: CardAxis) -> Limits:
        return self.of_axis.get(axis.name) or self.of_axis.get(axis.axis) or Limits()


@dataclass(frozen=True)
class Check:
    """One limit on one axis.

    what: e.g. `skill lost`; interval: of the number, in the unit of the limit
    told: in a sentence
    """

    axis: str
    what: str
    limit: float
    interval: Interval
    outcome: Outcome
    told: str


@dataclass(frozen=True)
class Gate:
    """What a gate found; notes: what could not be looked at, and why."""

    card: Card
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        of = f"{len(self.checks)} checks of {self.card.title}"
        return f"<Gate: {of}, {len(self.failed)} conclusively broken, {len(self.unclear)} cannot be told>"

    @property
    def failed(self) -> list[Check]:
        """Limits that are conclusively broken."""
        return [one for one in self.checks if one.outcome == "fail"]

    @property
    def unclear(self) -> list[Check]:
        """Limits of which nobody can tell."""
        return [one for one in self.checks if one.outcome == "cannot tell"]

    def passes(self, strict: bool = False) -> bool:
        """Whether no limit is conclusively broken; strict: and of none it cannot be told."""
        return not self.failed and not (strict and self.unclear)


def gate(
    card: Card,
    limits: GateLimits | None = None,
    against: Card | None = None,
    *,
    only: Sequence[str] = (),
    max_skill_lost: float | None = None,
    max_gap: float | None = None,
    min_worst_class: float | None = None,
    max_drop: float | None = None,
) -> Gate:
    """Hold a card against limits.

    Args:
        card: what `profile` made
        limits: of all axes, and of single ones
        against: an older card; on the same tasks it is compared task by task
        only: the axes that are looked at, by name or by what they stress; empty: all
        max_skill_lost, max_gap, min_worst_class, max_drop: limits of all axes, as `Limits` has them, which go before
            those in `limits`

    Returns:
        One check per limit and axis that it applies to.

    Raises:
        InputError: a limit is on an axis that was not measured, or nothing is there to check.
        Mismatch: the other card is of other data, or of tasks of another size.

    Example:
        >>> gate(Card(), max_gap=5)
        Traceback (most recent call last):
            ...
        shotproof.core.errors.InputError: the card has no axis: expected one that shotproof profile has written
    """
    limits = (limits or GateLimits()).with_flags(Limits(max_skill_lost, max_gap, min_worst_class, max_drop), only)
    axes = _chosen(card, limits)
    if against is None and any(limits.of(one).max_drop is not None for one in axes):
        raise InputError("max_drop: against which card? Name an older one (--against)")
    notes: list[str] = []
    checks = [check for axis in axes for check in _checks(card, axis, limits.of(axis))]
    for axis in axes if against is not None else []:
        assert against is not None
        found = _drop(card, axis, limits.of(axis), against)
        if isinstance(found, str):
            notes.append(found)
        else:
            checks.append(found)
    notes += [
        f"{one.name}: not held against {' and '.join(names)}; to do so, name it (--axis {one.name})"
        for one in axes
        if one.reference is not None and (names := limits.not_held(one))
    ]
    if not checks:
        named = ", ".join(one.name for one in axes)
        told = "; ".join(["expected a limit that applies there, such as max_gap = 5", *notes])
        raise InputError(f"nothing to check on {named}: {told}")
    return Gate(card, tuple(checks), tuple(notes))


def _chosen(card: Card, limits: GateLimits) -> list[CardAxis]:
    """The axes to look at; those that limits name must be there."""
    if not card.axes:
        raise InputError("the card has no axis: expected one that shotproof profile has written")
    known = {name for axis in card.axes for name in (axis.name, axis.axis)}
    for name in [*limits.only, *limits.of_axis]:
        missing = next((one for one in card.missing if one.name == name), None)
        if missing is not None and name not in known:
            raise InputError(f"axis '{name}' was not measured: {missing.reason}")
        if name not in known:
            raise InputError(f"unknown axis '{name}'{did_you_mean(name, known)}")
    return [one for one in card.axes if not limits.only or {one.name, one.axis} & set(limits.only)]


def _checks(card: Card, axis: CardAxis, limits: Limits) -> Iterator[Check]:
    """Limits on the card's own numbers."""
    lost, gap = axis.number("skill_lost", card.metric), axis.number("gap", card.metric)
    if limits.max_skill_lost is not None and lost is not None:
        yield _check(card, axis, "skill lost", "%", lost, limits.max_skill_lost)
    if limits.max_gap is not None and gap is not None:
        yield _check(card, axis, "gap", " points", gap, limits.max_gap)
    if limits.min_worst_class is not None:
        worst = axis.estimates["accuracy"]["wacc"]
        yield _check(card, axis, "worst-class accuracy", "%", worst, limits.min_worst_class, at_least=True)


def _drop(card: Card, axis: CardAxis, limits: Limits, against: Card) -> Check | str:
    """The accuracy of the other card minus that of this one: task by task where both are of the same tasks."""
    old = next((one for one in against.axes if one.name == axis.name), None)
    if old is None:
        return f"{axis.name}: not compared, the other card has no such axis"
    other_tasks = old.tasks.digest != axis.tasks.digest
    if other_tasks:
        if axis.tasks.searched_in and axis.tasks.searched_in != old.tasks.searched_in:
            return f"{axis.name}: not compared, its tasks were searched in the features of each classifier"
        _require_same_data(card, axis, against, old)
    before, now = (one.estimates["accuracy"][card.metric] for one in (old, axis))
    limit = MAX_DROP if limits.max_drop is None else limits.max_drop
    covers = now.covers if before.covers == now.covers else f"{now.covers}, {before.covers} before"
    both = [np.array(one.by_task.get(card.metric, ())) for one in (old, axis)]
    is_paired = not other_tasks and len(both[0]) == len(both[1]) > 0
    differences = both[0] - both[1] if is_paired else np.zeros(1)
    what, unit = "drop in accuracy", " points"
    if is_paired and not differences.any():
        same = Interval(0.0, 0.0, 0.0, f"{covers}, paired", card.level)
        outcome: Outcome = "pass" if limit >= 0 else "fail"
        return Check(axis.name, what, limit, same, outcome, f"{axis.name}: {what} 0{unit}: no task differs")
    reason = "of other tasks" if other_tasks else "a card lacks the accuracies of its tasks"
    first, second = (
        # Of differences that are all the same, nothing tells how they vary.
        Comparable.of_axis(number, one.tasks.tasks, values if np.ptp(differences) > 0 else ())
        for number, one, values in zip((before, now), (old, axis), both, strict=True)
    )
    over_tasks = None
    if is_paired:
        over_tasks = Estimate.over_tasks(differences)
    elif before.task_variance is not None and now.task_variance is not None:
        over_tasks = Estimate(0.0, Spread(before.task_variance + now.task_variance, 0.0))
    how = "paired" if is_paired else f"not paired: {reason},"
    drop = difference(first, second).interval(f"{covers}, {how}", card.level, over_tasks)
    return _check(card, axis, what, unit, drop, limit)


def _require_same_data(card: Card, axis: CardAxis, against: Card, old: CardAxis) -> None:
    """Refuse other tasks unless they are of the same data and design."""
    data = [one.sources["catalog"].digest if "catalog" in one.sources else None for one in (against, card)]
    designs = [(one.tasks.sampler, one.way, one.shot, one.query) for one in (old, axis)]
    if None in data or data[0] != data[1] or designs[0] != designs[1]:
        raise Mismatch(
            f"{axis.name}: the cards are of other tasks, {old.tasks.digest} and {axis.tasks.digest}, and of other data "
            "or sizes: profile both on the same data with the same options"
        )


def _check(
    card: Card, axis: CardAxis, what: str, unit: str, interval: Interval, limit: float, at_least: bool = False
) -> Check:
    """By where the interval lies; a number without one tells nothing."""
    limited = f"{'at least' if at_least else 'at most'} {limit:g}{unit}"
    if interval.refused or math.isnan(interval.low):
        told = f"{axis.name}: cannot tell whether {what} is {limited}: {interval.refused or 'there is no interval'}"
        return Check(axis.name, what, limit, interval, "cannot tell", told)
    number = f"{what} {percent(interval.mean)}{unit} {bounds(interval)}"
    by = f"{level(card.level)} {interval.covers} interval"
    beyond = interval.high < limit if at_least else interval.low > limit
    within = interval.low >= limit if at_least else interval.high <= limit
    if beyond or within:
        outcome: Outcome = "fail" if beyond else "pass"
        kept = "breaks" if beyond else "keeps"
        return Check(
            axis.name, what, limit, interval, outcome, f"{axis.name}: {number} {kept} the limit, {limited} ({by})"
        )
    settled = would_settle(needed(interval, axis.tasks.tasks, limit), card.medium, interval.covers)
    told = settled or "it is too near to the limit for any practicable number of tasks"
    told = f"{axis.name}: {number} may keep or break the limit, {limited}: {told} ({by})"
    return Check(axis.name, what, limit, interval, "cannot tell", told)


def _limits(table: Mapping[str, Any], place: str) -> Limits:
    known = [each.name for each in fields(Limits)]
    for key in table:
        if key not in known:
            raise InputError(f"{place}unknown key '{key}'{did_you_mean(key, known)}")
    try:
        return Limits(**table)
    except InputError as error:
        raise error.placed(place) from error
