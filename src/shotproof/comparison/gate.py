"""Gate that checks a card against limits. It fails if a limit is conclusively broken.

A limit is broken if the whole interval is beyond it, and met if the whole interval is within it. In between, the check
is inconclusive, and its sentence states how many more tasks would settle it.
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
from shotproof.comparison.numbers import bounds, level, listed, percent
from shotproof.comparison.sentences import would_settle
from shotproof.core.errors import InputError, Mismatch, did_you_mean, error_prefix
from shotproof.core.plain_values import typed
from shotproof.core.storage.files import read_toml
from shotproof.stats.intervals import Estimate, Interval, Spread, needed

Outcome = Literal["pass", "fail", "cannot tell"]
# Axes that measure reliance, as swaps of the background do among the changes. Other tasks cost every classifier
# something, and need separate limits.
RELIANCE = ("attributes", "contexts", "conditions")
SEARCHED = "difficulty"
MAX_DROP = 2.0  # default, in points against another card: less is noise at the usual number of tasks


@dataclass(frozen=True)
class Limits:
    """Limits of an axis; None means no limit.

    max_skill_lost: largest loss of accuracy above chance, in percent of it, e.g. 15
    max_gap: largest loss of accuracy against the reference, in points
    min_worst_class: smallest mean accuracy on the worst class of a task, in percent
    max_drop: largest loss of accuracy against another card, in points
    """

    max_skill_lost: float | None = None
    max_gap: float | None = None
    min_worst_class: float | None = None
    max_drop: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.specified.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"{name}: expected a number, found {value!r}")
        for name in ("max_skill_lost", "min_worst_class"):
            value = self.specified.get(name, 0.0)
            if not 0 <= value <= 100:
                raise InputError(f"{name}: expected a percentage from 0 to 100, found {value:g}")

    @property
    def specified(self) -> dict[str, float]:
        """Return the limits that are set."""
        values = {limit.name: getattr(self, limit.name) for limit in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class _LimitsFile:
    """Entries of a limits file besides the limits of all axes."""

    axes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class GateLimits:
    """Limits of all axes, and limits of single axes, which take precedence.

    Unless `only` selects axes, the general limits on skill lost and gap apply to the axes that measure reliance:
    attributes, contexts, conditions, and swaps of the background. The general limit on the worst class applies to all
    axes except searched tasks and backgrounds without a foreground.

    everywhere: limits of all axes
    of_axis: limits of single axes, by name or by what they stress
    only: axes to check, by name or by what they stress; all if empty
    """

    everywhere: Limits = field(default_factory=Limits)
    of_axis: Mapping[str, Limits] = field(default_factory=dict)
    only: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> GateLimits:
        """Read a TOML file with limits, `only`, and tables `[axes.NAME]` with the limits of single axes.

        Raises:
            InputError: if the file cannot be read, or has an invalid key or value.
        """
        description = f"limits file {path}"
        content = read_toml(Path(path), description)
        with error_prefix(f"{description}: "):
            file: _LimitsFile = typed(content, _LimitsFile)
            of_axis = {name: _parse_limits(table, f"[axes.{name}], ") for name, table in file.axes.items()}
            everywhere = {key: value for key, value in content.items() if key not in ("axes", "only")}
            return cls(_parse_limits(everywhere, ""), of_axis, file.only)

    def with_flags(self, limits: Limits, only: Sequence[str] = ()) -> GateLimits:
        """Return a copy with limits that override those of all axes, and with other axes to check."""
        return replace(self, everywhere=replace(self.everywhere, **limits.specified), only=tuple(only) or self.only)

    def of(self, axis: CardAxis) -> Limits:
        """Return the limits of an axis, by its name or else by what it stresses."""
        exempt = dict.fromkeys(self.exempt_limits(axis))
        return replace(self.everywhere, **{**exempt, **self._specific_limits(axis).specified})

    def exempt_limits(self, axis: CardAxis) -> list[str]:
        """Return the names of the general limits that do not apply to an axis, because nothing names it."""
        if self.only:
            return []
        specific = self._specific_limits(axis).specified
        exempt = [] if axis.axis in RELIANCE or axis.swaps_background else ["max_skill_lost", "max_gap"]
        exempt += ["min_worst_class"] if axis.axis == SEARCHED or axis.is_background_alone else []
        return [name for name in exempt if name in self.everywhere.specified and name not in specific]

    def _specific_limits(self, axis: CardAxis) -> Limits:
        return self.of_axis.get(axis.name) or self.of_axis.get(axis.axis) or Limits()


@dataclass(frozen=True)
class Check:
    """Check of one limit on one axis.

    quantity: the number that is limited, e.g. `skill lost`
    interval: the number with its interval, in the unit of the limit
    sentence: the result in words
    """

    axis: str
    quantity: str
    limit: float
    interval: Interval
    outcome: Outcome
    sentence: str


@dataclass(frozen=True)
class Gate:
    """Result of a gate.

    notes: what could not be checked, and why
    """

    card: Card
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        checks = f"{len(self.checks)} checks of {self.card.title}"
        return f"<Gate: {checks}, {len(self.failed)} conclusively broken, {len(self.unclear)} inconclusive>"

    @property
    def failed(self) -> list[Check]:
        """Return the checks whose limit is conclusively broken."""
        return [check for check in self.checks if check.outcome == "fail"]

    @property
    def unclear(self) -> list[Check]:
        """Return the inconclusive checks."""
        return [check for check in self.checks if check.outcome == "cannot tell"]

    def passes(self, strict: bool = False) -> bool:
        """Return whether no limit is conclusively broken; if strict, also no check may be inconclusive."""
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
    """Check a card against limits.

    Args:
        card: card written by `profile`
        limits: limits of all axes, and of single ones
        against: older card to compare with, task by task if both are on the same tasks
        only: axes to check, by name or by what they stress; all if empty
        max_skill_lost, max_gap, min_worst_class, max_drop: limits of all axes, as in `Limits`; they override those in
            `limits`

    Returns:
        One check per limit and axis that it applies to.

    Raises:
        InputError: if a limit is on an axis that was not measured, or there is nothing to check.
        Mismatch: if the other card is of other data, or of tasks of another size.

    Example:
        >>> gate(Card(), max_gap=5)
        Traceback (most recent call last):
            ...
        shotproof.core.errors.InputError: the card has no axis: expected one that shotproof profile has written
    """
    limits = (limits or GateLimits()).with_flags(Limits(max_skill_lost, max_gap, min_worst_class, max_drop), only)
    axes = _select_axes(card, limits)
    if against is None and any(limits.of(axis).max_drop is not None for axis in axes):
        raise InputError("max_drop: expected an older card to compare with (--against)")
    notes: list[str] = []
    checks = [check for axis in axes for check in _check_axis(card, axis, limits.of(axis))]
    for axis in axes if against is not None else []:
        assert against is not None
        drop = _check_drop(card, axis, limits.of(axis), against)
        if isinstance(drop, str):
            notes.append(drop)
        else:
            checks.append(drop)
    notes += [
        f"{axis.name}: not checked against {listed(names)}; to check it, name the axis (--axis {axis.name})"
        for axis in axes
        if axis.reference is not None and (names := limits.exempt_limits(axis))
    ]
    if not checks:
        axis_names = ", ".join(axis.name for axis in axes)
        reasons = "; ".join(["expected a limit that applies to it, such as max_gap = 5", *notes])
        raise InputError(f"nothing to check on {axis_names}: {reasons}")
    return Gate(card, tuple(checks), tuple(notes))


def _select_axes(card: Card, limits: GateLimits) -> list[CardAxis]:
    """Return the axes to check, and raise InputError if the limits name an axis that the card lacks."""
    if not card.axes:
        raise InputError("the card has no axis: expected one that shotproof profile has written")
    available = {name for axis in card.axes for name in (axis.name, axis.axis)}
    for name in [*limits.only, *limits.of_axis]:
        missing = next((axis for axis in card.missing if axis.name == name), None)
        if missing is not None and name not in available:
            raise InputError(f"axis '{name}' was not measured: {missing.reason}")
        if name not in available:
            raise InputError(f"unknown axis '{name}'{did_you_mean(name, available)}")
    return [axis for axis in card.axes if not limits.only or {axis.name, axis.axis} & set(limits.only)]


def _check_axis(card: Card, axis: CardAxis, limits: Limits) -> Iterator[Check]:
    """Check the limits on the numbers of the card itself."""
    lost, gap = axis.number("skill_lost", card.metric), axis.number("gap", card.metric)
    if limits.max_skill_lost is not None and lost is not None:
        yield _check(card, axis, "skill lost", "%", lost, limits.max_skill_lost)
    if limits.max_gap is not None and gap is not None:
        yield _check(card, axis, "gap", " points", gap, limits.max_gap)
    if limits.min_worst_class is not None:
        worst = axis.estimates["accuracy"]["wacc"]
        yield _check(card, axis, "worst-class accuracy", "%", worst, limits.min_worst_class, at_least=True)


def _check_drop(card: Card, axis: CardAxis, limits: Limits, against: Card) -> Check | str:
    """Check the accuracy of the other card minus that of this one, task by task if both are on the same tasks."""
    old = next((old_axis for old_axis in against.axes if old_axis.name == axis.name), None)
    if old is None:
        return f"{axis.name}: not compared, because the other card has no such axis"
    has_other_tasks = old.tasks.digest != axis.tasks.digest
    if has_other_tasks:
        if axis.tasks.searched_in and axis.tasks.searched_in != old.tasks.searched_in:
            return f"{axis.name}: not compared, because its tasks were searched in the features of each classifier"
        _require_same_data(card, axis, against, old)
    before, now = (side.estimates["accuracy"][card.metric] for side in (old, axis))
    limit = MAX_DROP if limits.max_drop is None else limits.max_drop
    interval_name = now.covers if before.covers == now.covers else f"{now.covers}, {before.covers} before"
    by_task = [np.array(side.by_task.get(card.metric, ())) for side in (old, axis)]
    is_paired = not has_other_tasks and len(by_task[0]) == len(by_task[1]) > 0
    differences = by_task[0] - by_task[1] if is_paired else np.zeros(1)
    quantity, unit = "drop in accuracy", " points"
    if is_paired and not differences.any():
        no_change = Interval(0.0, 0.0, 0.0, f"{interval_name}, paired", card.level)
        outcome: Outcome = "pass" if limit >= 0 else "fail"
        sentence = f"{axis.name}: {quantity} of 0{unit}: no task differs."
        return Check(axis.name, quantity, limit, no_change, outcome, sentence)
    reason = "of other tasks" if has_other_tasks else "a card lacks the accuracies of its tasks"
    first, second = (
        # If all differences are the same, their variance cannot be estimated.
        Comparable.of_axis(number, side.tasks.tasks, values if np.ptp(differences) > 0 else ())
        for number, side, values in zip((before, now), (old, axis), by_task, strict=True)
    )
    over_tasks = None
    if is_paired:
        over_tasks = Estimate.over_tasks(differences)
    elif before.task_variance is not None and now.task_variance is not None:
        over_tasks = Estimate(0.0, Spread(before.task_variance + now.task_variance, 0.0))
    pairing = "paired" if is_paired else f"not paired: {reason},"
    drop = difference(first, second).interval(f"{interval_name}, {pairing}", card.level, over_tasks)
    return _check(card, axis, quantity, unit, drop, limit)


def _require_same_data(card: Card, axis: CardAxis, against: Card, old: CardAxis) -> None:
    """Raise Mismatch if the other tasks are not of the same data and design."""
    data = [side.sources["catalog"].digest if "catalog" in side.sources else None for side in (against, card)]
    designs = [(side.tasks.sampler, side.way, side.shot, side.query) for side in (old, axis)]
    if None in data or data[0] != data[1] or designs[0] != designs[1]:
        raise Mismatch(
            f"{axis.name}: the cards are on different tasks, {old.tasks.digest} and {axis.tasks.digest}, of different "
            "data or sizes: profile both on the same data with the same options"
        )


def _check(
    card: Card, axis: CardAxis, quantity: str, unit: str, interval: Interval, limit: float, at_least: bool = False
) -> Check:
    """Check a number by where its interval lies; without an interval, the check is inconclusive."""
    required = f"{'at least' if at_least else 'at most'} {limit:g}{unit}"
    if interval.refused or math.isnan(interval.low):
        reason = interval.refused or "there is no interval"
        sentence = f"{axis.name}: the data does not show whether {quantity} is {required}: {reason}."
        return Check(axis.name, quantity, limit, interval, "cannot tell", sentence)
    estimate = f"{percent(interval.mean)}{unit} {bounds(interval)}"
    basis = f"({level(card.level)} {interval.covers} interval)"
    beyond = interval.high < limit if at_least else interval.low > limit
    within = interval.low >= limit if at_least else interval.high <= limit
    if beyond or within:
        outcome: Outcome = "fail" if beyond else "pass"
        verb = "breaks" if beyond else "meets"
        sentence = f"{axis.name}: {quantity} of {estimate} {verb} the limit of {required} {basis}."
        return Check(axis.name, quantity, limit, interval, outcome, sentence)
    settled = would_settle(needed(interval, axis.tasks.tasks, limit), card.medium, interval.covers)
    settled = settled or "It is too close to the limit for any practicable number of tasks to settle it"
    unanswered = f"the data does not show whether {quantity}, {estimate}, is {required}"
    sentence = f"{axis.name}: {unanswered} {basis}. {settled}."
    return Check(axis.name, quantity, limit, interval, "cannot tell", sentence)


def _parse_limits(table: Mapping[str, Any], prefix: str) -> Limits:
    known_keys = [limit.name for limit in fields(Limits)]
    for key in table:
        if key not in known_keys:
            raise InputError(f"{prefix}unknown key '{key}'{did_you_mean(key, known_keys)}")
    try:
        return Limits(**table)
    except InputError as error:
        raise error.with_prefix(prefix) from error
