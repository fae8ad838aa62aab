"""The figures of a robustness card: its axes side by side, and a badge."""

from __future__ import annotations

from markupsafe import Markup

from shotproof.comparison.card import Card, CardAxis
from shotproof.comparison.numbers import bounds, percent, typeset
from shotproof.report.figures.svg import (
    Box,
    Scale,
    element,
    ends,
    line,
    marker,
    names_width,
    picture,
    row_name,
    text,
    whisker,
    x_axis,
)

STEP = 22.0
PANEL = 260.0
PHONE_PANEL = 120.0  # both panels and the names are as wide as a phone
NAME_LENGTH = 22
_OWN, _BEFORE = 0, 6  # series of the classifier on an axis, and on its reference


def axes_figure(card: Card, panel: float = PANEL) -> Markup:
    """One row per axis: accuracy on it and on its reference, and beside it the skill that is lost.

    Small strokes are the baselines, whiskers the intervals. Narrow panels keep the text readable on a phone.
    """
    left = names_width([axis.name for axis in card.axes], NAME_LENGTH)
    top, bottom = 20.0, 20.0 + STEP * len(card.axes)
    accuracy = Box(left, top, left + panel, bottom)
    lost = Box(accuracy.right + 24, top, accuracy.right + 24 + panel, bottom)
    metric = card.metric
    of_accuracy = Scale(0, 100, accuracy.left, accuracy.right)
    shares = [one for axis in card.stresses if (one := axis.estimates["skill_lost"][metric]).has_mean]
    reached = [0.0, *(end for share in shares for end in ends(share))]
    of_lost = Scale.around(reached, lost.left, lost.right, 0.04)
    parts = [
        *x_axis(of_accuracy, accuracy, "accuracy (%)" if metric == "acc" else "worst-class accuracy (%)"),
        *x_axis(of_lost, lost, "skill lost (%)"),
        line(of_lost(0), lost.top, of_lost(0), lost.bottom, "axis"),
    ]
    for number, axis in enumerate(card.axes):
        y = top + STEP * (number + 0.5)
        parts.append(row_name(axis.name, NAME_LENGTH, left - 6, y + 3.5))
        parts += _accuracy_marks(card, axis, of_accuracy, y)
        parts += _lost_marks(card, axis, of_lost, lost, y)
    chance = next((axis.chance[metric] for axis in card.axes if metric in axis.chance), None)
    if chance is not None:
        x = of_accuracy(chance)
        parts += [line(x, top, x, bottom, "reference"), text(x, top - 6, f"chance {percent(chance)}", "middle", "tick")]
    described = f"Accuracy and skill lost of {card.title} on {len(card.axes)} axes. The table has the values."
    return picture(lost.right + 12, bottom + 40, described, parts)


def _accuracy_marks(card: Card, axis: CardAxis, scale: Scale, y: float) -> list[Markup]:
    parts = [
        _stroke(scale(baseline.accuracy[card.metric]), y, f"{baseline.method} on {baseline.encoder}")
        for baseline in axis.baselines
    ]
    if axis.reference is not None:
        before = axis.estimates["reference_accuracy"][card.metric]
        told = f"{axis.reference.sampler}: {percent(before.mean)} {bounds(before)}"
        parts.append(marker(scale(before.mean), y, _BEFORE, told))
    now = axis.estimates["accuracy"][card.metric]
    parts.append(whisker(scale, now, y, f"whisker strong c{_OWN}"))
    parts.append(marker(scale(now.mean), y, _OWN, f"{axis.name}: {percent(now.mean)} {bounds(now)}"))
    return parts


def _lost_marks(card: Card, axis: CardAxis, scale: Scale, frame: Box, y: float) -> list[Markup]:
    share = axis.number("skill_lost", card.metric)
    if share is None or not share.has_mean:
        return []
    shown = [
        (baseline, baseline.skill_lost[card.metric])
        for baseline in axis.baselines
        if card.metric in baseline.skill_lost
    ]
    inside = [(one, value) for one, value in shown if frame.left <= scale(value) <= frame.right]
    parts = [_stroke(scale(value), y, f"{one.method} on {one.encoder}") for one, value in inside]
    parts.append(whisker(scale, share, y, f"whisker strong c{_OWN}"))
    told = f"{axis.name}: {percent(share.mean)}% {bounds(share)}"
    parts.append(marker(scale(share.mean), y, _OWN, told))
    return parts


def _stroke(x: float, y: float, told: str) -> Markup:
    return element("line", element("title", told), x1=x, y1=y - 5, x2=x, y2=y + 5, class_="whisker c6")


def badge(card: Card) -> str:
    """Return an SVG of one line: the axis on which most skill is conclusively lost, with its interval."""
    left, right = "robustness", badge_text(card)
    widths = [12 + 6.6 * len(left), 12 + 6.6 * len(right)]
    total = sum(widths)
    parts = [
        element("title", f"{left}: {right}"),
        element("rect", width=widths[0], height=20.0, fill="#3a3d41"),
        element("rect", x=widths[0], width=widths[1], height=20.0, fill="#0b5c8f"),
        element("text", left, x=widths[0] / 2, y=14.0, fill="#fff", text_anchor="middle"),
        element("text", right, x=widths[0] + widths[1] / 2, y=14.0, fill="#fff", text_anchor="middle"),
    ]
    inner = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:g}" height="20" role="img" '
        f'aria-label="{element("b", f"{left}: {right}")[3:-4]}" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11">{inner}</svg>\n'
    )


def badge_text(card: Card) -> str:
    """What the badge says: never more than an interval supports."""
    losing = [stress for stress in card.stresses if stress.conclusion == "+"]
    if not card.stresses:
        return "no stress measured"
    if not losing:
        return f"no loss told on {len(card.stresses)} axes"
    worst = max(losing, key=lambda one: one.estimates["skill_lost"][card.metric].mean)
    share = worst.estimates["skill_lost"][card.metric]
    return typeset(f"{worst.name} loses {share.low:.0f} to {share.high:.0f}% of skill")
