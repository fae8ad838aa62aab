"""Card rebuilt from its results, task sets and features, and its differences from the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.make_card import make_card
from shotproof.comparison.card import Card, without_folders
from shotproof.comparison.card_contradictions import ROUNDING
from shotproof.core.errors import InputError
from shotproof.core.plain_values import format_value
from shotproof.core.runtime.runtime import Runtime
from shotproof.stats.intervals import Interval

# Rounding differs between machines, so a few answers on halves of the data may differ.
WIDTH_SHARE = 0.02
_WORDS = ("verdict", "advice", "notes")  # their wording depends on the version
_FREE = ("version", "missing")  # do not depend on the results


def remake_card(card: Card, inputs: Inputs, runtime: Runtime | None = None) -> Card:
    """Rebuild a card from the content of its folder, with the metric, level and intervals that it states.

    Args:
        card: the submitted card
        inputs: all content of its folder, with the number of halvings used for such cards
        runtime: runtime for the evaluation

    Raises:
        InputError: the results lack the card's classifier, or cannot be compared.
    """
    numbers = list(_numbers(card))
    task_intervals = ["sampler"] if any(number.task_variance is not None for number in numbers) else []
    comparison = compare(
        inputs,
        intervals=list(dict.fromkeys([card.covers, *task_intervals, *(number.covers for number in numbers)])),
        level=card.level,
        metric=card.metric,
        placebo=any(axis.placebo is not None for axis in card.axes),
        runtime=runtime,
    )
    for classifier in comparison.classifiers:
        names = comparison.encoder_names[classifier.encoder], without_folders(classifier.method)
        if names == (card.encoder, card.method):
            return make_card(comparison, inputs, classifier, missing=card.missing, quick=card.quick)
    raise InputError(f"there are no results of {card.title}")


def card_differences(card: Card, remade: Card) -> Iterator[str]:
    """Yield the differences between a card and the rebuilt one, in sentences."""
    ignored_keys = (*_FREE, *(() if card.version == remade.version else _WORDS))
    stated_axes, rebuilt_axes = ({axis.name: axis for axis in version.axes} for version in (card, remade))
    yield from (
        f"{name}: the results have this axis, but the card omits it" for name in rebuilt_axes if name not in stated_axes
    )
    yield from (f"{name}: the results lack this axis" for name in stated_axes if name not in rebuilt_axes)
    for name in stated_axes:
        if name in rebuilt_axes:
            stated_values, rebuilt_values = (
                _axis_values(axes[name], ignored_keys) for axes in (stated_axes, rebuilt_axes)
            )
            yield from (f"{name}: {difference}" for difference in _differences(stated_values, rebuilt_values))
    stated_values, rebuilt_values = (_without(version.to_json(), ("axes", *ignored_keys)) for version in (card, remade))
    yield from _differences(stated_values, rebuilt_values)


def _axis_values(axis: Any, ignored_keys: tuple[str, ...]) -> dict[str, Any]:
    """Convert an axis to plain values, with its estimates at the top level."""
    (plain,) = Card(axes=(axis,)).to_json()["axes"]
    return {**plain["estimates"], **_without(plain, ("estimates", *ignored_keys))}


def _without(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the values without some keys."""
    return {key: value for key, value in values.items() if key not in keys}


def _numbers(card: Card) -> Iterator[Interval]:
    """Yield all intervals of a card."""
    for axis in card.axes:
        for numbers in axis.estimates.values():
            yield from numbers.values()


def _differences(stated: Any, rebuilt: Any, location: str = "") -> Iterator[str]:
    """Compare two trees of plain values; numbers may differ by rounding, intervals by a share of their width."""
    if isinstance(stated, Mapping) and isinstance(rebuilt, Mapping):
        if {"low", "high"} <= stated.keys() & rebuilt.keys():
            yield from _interval_differences(stated, rebuilt, location)
            return
        for key in [*stated, *(key for key in rebuilt if key not in stated)]:
            yield from _differences(stated.get(key), rebuilt.get(key), f"{location}, {key}" if location else key)
    elif isinstance(stated, list) and isinstance(rebuilt, list) and len(stated) == len(rebuilt):
        for row, (stated_value, rebuilt_value) in enumerate(zip(stated, rebuilt, strict=True)):
            yield from _differences(stated_value, rebuilt_value, f"{location} {row}")
    elif not _close(stated, rebuilt, ROUNDING):
        yield f"{location}: {format_value(stated)}, recomputed {format_value(rebuilt)}"


def _interval_differences(stated: Mapping[str, Any], rebuilt: Mapping[str, Any], location: str) -> Iterator[str]:
    """Compare two intervals."""
    width = 0.0
    if rebuilt["low"] is not None and rebuilt["high"] is not None:
        width = rebuilt["high"] - rebuilt["low"]
    tolerance = {"low": WIDTH_SHARE * width, "high": WIDTH_SHARE * width}
    # Without an interval, its name does not matter.
    covers = () if {stated["low"], stated["high"], rebuilt["low"], rebuilt["high"]} == {None} else ("covers",)
    for key in ("mean", "low", "high", *covers, "level"):
        if not _close(stated.get(key), rebuilt.get(key), ROUNDING + tolerance.get(key, 0.0)):
            yield f"{location}, {key}: {format_value(stated.get(key))}, recomputed {format_value(rebuilt.get(key))}"


def _close(stated: Any, rebuilt: Any, tolerance: float) -> bool:
    """Return whether two values are equal, or two numbers within the tolerance."""
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, rebuilt))
    return abs(stated - rebuilt) <= tolerance if are_numbers else bool(stated == rebuilt)
