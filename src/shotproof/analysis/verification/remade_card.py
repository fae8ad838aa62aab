"""A card made again from the results, task sets and features that it was made from, and where the two differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.make_card import make_card
from shotproof.comparison.card import Card, without_folders
from shotproof.comparison.card_contradictions import ROUNDING
from shotproof.core.errors import InputError
from shotproof.core.plain_values import shown
from shotproof.core.runtime.runtime import Runtime
from shotproof.stats.intervals import Interval

# Another machine rounds otherwise, so that an answer on a half of the data may differ here and there.
WIDTH_SHARE = 0.02
_WORDS = ("verdict", "advice", "notes")  # another version words them otherwise
_FREE = ("version", "missing")  # what no result decides


def remake_card(card: Card, inputs: Inputs, runtime: Runtime | None = None) -> Card:
    """Make a card again from what is in its folder, by the metric, level and intervals that it states.

    Args:
        card: as it was handed in
        inputs: all that its folder has, with the number of halvings that such cards are made by
        runtime: how to compute

    Raises:
        InputError: the results lack the card's classifier, or cannot be compared.
    """
    numbers = list(_numbers(card))
    of_tasks = ["sampler"] if any(number.task_variance is not None for number in numbers) else []
    comparison = compare(
        inputs,
        intervals=list(dict.fromkeys([card.covers, *of_tasks, *(number.covers for number in numbers)])),
        level=card.level,
        metric=card.metric,
        placebo=any(axis.placebo is not None for axis in card.axes),
        runtime=runtime,
    )
    for classifier in comparison.classifiers:
        named = comparison.encoder_names[classifier.encoder], without_folders(classifier.method)
        if named == (card.encoder, card.method):
            return make_card(comparison, inputs, classifier, missing=card.missing, quick=card.quick)
    raise InputError(f"there are no results of {card.title}")


def card_differences(card: Card, remade: Card) -> Iterator[str]:
    """Where a card states something else than the one that was made again, in sentences."""
    left_out = (*_FREE, *(() if card.version == remade.version else _WORDS))
    stated, found = ({axis.name: axis for axis in one.axes} for one in (card, remade))
    yield from (f"{name}: the results have this axis, the card leaves it out" for name in found if name not in stated)
    yield from (f"{name}: the results lack this axis" for name in stated if name not in found)
    for name in stated:
        if name in found:
            one, other = (_plain(axes[name], left_out) for axes in (stated, found))
            yield from (f"{name}: {difference}" for difference in _differences(one, other))
    one, other = (_without(each.to_json(), ("axes", *left_out)) for each in (card, remade))
    yield from _differences(one, other)


def _plain(axis: Any, left_out: tuple[str, ...]) -> dict[str, Any]:
    (plain,) = Card(axes=(axis,)).to_json()["axes"]
    return {**plain["estimates"], **_without(plain, ("estimates", *left_out))}


def _without(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def _numbers(card: Card) -> Iterator[Interval]:
    for axis in card.axes:
        for numbers in axis.estimates.values():
            yield from numbers.values()


def _differences(stated: Any, found: Any, place: str = "") -> Iterator[str]:
    """Walk two trees of plain values; numbers may differ by their rounding, intervals by a share of their width."""
    if isinstance(stated, Mapping) and isinstance(found, Mapping):
        if {"low", "high"} <= stated.keys() & found.keys():
            yield from _other_number(stated, found, place)
            return
        for key in [*stated, *(key for key in found if key not in stated)]:
            yield from _differences(stated.get(key), found.get(key), f"{place}, {key}" if place else key)
    elif isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        for row, (one, other) in enumerate(zip(stated, found, strict=True)):
            yield from _differences(one, other, f"{place} {row}")
    elif not _close(stated, found, ROUNDING):
        yield f"{place}: {shown(stated)}, computed again {shown(found)}"


def _other_number(stated: Mapping[str, Any], found: Mapping[str, Any], place: str) -> Iterator[str]:
    width = 0.0
    if found["low"] is not None and found["high"] is not None:
        width = found["high"] - found["low"]
    slack = {"low": WIDTH_SHARE * width, "high": WIDTH_SHARE * width}
    # Without an interval there is nothing that it could cover.
    covers = () if {stated["low"], stated["high"], found["low"], found["high"]} == {None} else ("covers",)
    for key in ("mean", "low", "high", *covers, "level"):
        if not _close(stated.get(key), found.get(key), ROUNDING + slack.get(key, 0.0)):
            yield f"{place}, {key}: {shown(stated.get(key))}, computed again {shown(found.get(key))}"


def _close(stated: Any, found: Any, slack: float) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (stated, found))
    return abs(stated - found) <= slack if numbers else bool(stated == found)
