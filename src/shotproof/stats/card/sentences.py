"""A card in plain words: nothing that an interval does not support."""

from __future__ import annotations

from collections.abc import Sequence

from shotproof.core.nouns import counted, nouns
from shotproof.stats.card.card import Card, CardAxis, CardNumber
from shotproof.stats.export.numbers import bounds, level, listed, percent
from shotproof.stats.export.sentences import would_settle
from shotproof.stats.needed import Needed
from shotproof.stats.verdicts import LITTLE

_METRICS = {"acc": "accuracy", "wacc": "worst-class accuracy"}
_LEANS = {"attributes": "attributes", "contexts": "the {context}", "conditions": "what the conditions keep apart"}
_TASKS = {"unbalanced": "tasks with unequal queries"}


def axis_sentence(
    axis: CardAxis,
    metric: str,
    medium: str | None = None,
    context: str = "context",
    would_tell: Needed | None = None,
) -> str:
    """What an axis shows, in one or two sentences.

    Args:
        axis: with all but its verdict
        metric: that the statement is by
        medium: what the items are
        context: what contexts are called
        would_tell: what would settle it if nothing is conclusive
    """
    if axis.reference is None:
        chance = f"; guessing gives {percent(axis.chance['acc'])}%" if "acc" in axis.chance else ""
        return (
            f"On random tasks of {axis.way} ways and {counted(axis.shot, 'shot')}: {_percent(axis.accuracy['acc'])} "
            f"accuracy, {_percent(axis.accuracy['wacc'])} on the worst class{chance}."
        )
    where = _TASKS.get(axis.name, f"{axis.name} tasks")
    lost, share = (axis.excess or axis.gap)[metric], axis.skill_lost[metric]
    if share.mean is None:
        return f"It is at chance on {axis.reference.sampler} tasks, and has nothing to lose on {where}."
    beyond = "beyond a placebo" if axis.excess else f"against {axis.reference.sampler} tasks"
    leans = _LEANS.get(axis.axis, "").format(context=context.replace("_", " ")) if axis.is_shuffled else ""
    about = f" (sampler interval, about these {nouns(medium)} only)" if lost.covers == "sampler" else ""
    if axis.conclusion == "+":
        first = f"It leans on {leans}: on" if leans else "On"
        return (
            f"{first} {where} it loses {_percent(share)} of its {_METRICS[metric]} above chance {beyond}, "
            f"{_points(lost)}{about}."
        )
    if axis.conclusion == "-":
        return f"On {where} it does better, not worse: by {_points(_negated(lost))} {beyond}{about}."
    what = f"leans on {leans}" if leans else f"loses anything on {where}"
    if lost.low is None or lost.high is None:
        return f"The data does not show whether it {what}: {lost.refused}."
    between = f"between {percent(lost.low)} and {percent(lost.high)} points {beyond}"
    if lost.low > 0 or lost.high < 0:  # by itself
        corrected = "after Holm's correction for all losses of the comparison"
        return f"The data does not show whether it {what} {corrected}; by itself, the loss is {between}{about}."
    if _is_little(axis):
        most = f"{percent(max(axis.at_most or 0.0, 0.0))}% of its {_METRICS[metric]} above chance"
        return f"On {where} it loses at most {most} {beyond}{about}."
    settled = would_settle(would_tell if (lost.mean or 0.0) > 0 else None, medium, lost.covers)
    return f"The data does not show whether it {what}: the loss is {between}{settled}{about}."


def card_sentences(card: Card) -> list[str]:
    """What was measured and what came out, in at most five sentences."""
    tasks = sum(one.tasks.tasks for one in card.axes)
    others = len(card.axes[0].baselines) if card.axes else 0
    beside = f", beside {counted(others, 'baseline classifier')}" if others else ""
    data = card.name or "the data"
    told = [f"{card.title} was tested on {data}: {counted(tasks, 'task')} on {_names(card.axes)}{beside}."]
    usual = max((one for one in card.axes if one.reference is None), key=lambda one: one.shot == 5, default=None)
    if usual is not None:
        told.append(f"{usual.verdict} It ranks {usual.rank['accuracy']} classifiers.")
    losing = [one for one in card.stresses if one.conclusion == "+"]
    losing.sort(key=lambda one: -(one.skill_lost[card.metric].mean or 0.0))
    by = f"{level(card.level)} {_covers(card)}"
    if losing:
        shares = [f"{one.name} ({_percent(one.skill_lost[card.metric])})" for one in losing]
        told.append(f"It conclusively loses accuracy above chance on {listed(shares)} ({by}).")
    clear = [one for one in card.stresses if one.conclusion == "-"]
    unclear = [one.name for one in card.stresses if one.conclusion == "0" and not _is_little(one)]
    little = [one.name for one in card.stresses if one.conclusion == "0" and _is_little(one)]
    if little:
        told.append(f"It loses at most {LITTLE:g}% of its accuracy above chance on {listed(little)} ({by}).")
    if unclear:
        told.append(f"The data does not show whether anything is lost on {listed(unclear)} ({by}).")
    if clear:
        told.append(f"It does better, not worse, on {listed([one.name for one in clear])} ({by}).")
    if card.missing:
        told.append(f"Not measured: {listed([one.name for one in card.missing])}; the reasons are below.")
    return told[:5]


def _is_little(axis: CardAxis) -> bool:
    """Return whether little is lost at most."""
    return axis.at_most is not None and axis.at_most <= LITTLE


def _names(axes: Sequence[CardAxis]) -> str:
    return listed([one.name for one in axes]) if axes else "no axis"


def _covers(card: Card) -> str:
    """The intervals that the statements are by: where some could not be given, of several kinds."""
    kinds = dict.fromkeys((one.excess or one.gap)[card.metric].covers for one in card.stresses)
    about = f", {'' if len(kinds) == 1 else 'the former '}about these {nouns(card.medium)} only"
    ordered = sorted(kinds, key=lambda name: name != "sampler") or [card.covers]
    return f"{listed(ordered)} intervals{about if 'sampler' in kinds else ''}"


def _percent(number: CardNumber) -> str:
    return f"{percent(number.interval.mean)}% {bounds(number.interval)}"


def _points(number: CardNumber) -> str:
    return f"{percent(number.interval.mean)} points {bounds(number.interval)}"


def _negated(number: CardNumber) -> CardNumber:
    mean, low, high = (None if one is None else -one for one in (number.mean, number.low, number.high))
    return CardNumber(mean, high, low, number.covers, number.level, number.refused)
