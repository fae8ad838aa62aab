"""Figures of a robustness card: its axes side by side, and a badge."""

from __future__ import annotations

from markupsafe import Markup

from shotproof.comparison.card import Card, CardAxis
from shotproof.comparison.numbers import bounds, percent, typeset
from shotproof.core.nouns import counted
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
PHONE_PANEL = 120.0  # both panels and the names together are as wide as a phone
NAME_LENGTH = 22
_ON_AXIS, _ON_REFERENCE = 0, 6  # series of the classifier on an axis, and on its reference


def axes_figure(card: Card, panel: float = PANEL) -> Markup:
    """Draw one row per axis: the accuracy on it and on its reference, and beside them the skill lost.

    Small strokes are baselines, whiskers are intervals. Narrow panels keep the text readable on a phone.
    """
    left = names_width([axis.name for axis in card.axes], NAME_LENGTH)
    top, bottom = 20.0, 20.0 + STEP * len(card.axes)
    accuracy = Box(left, top, left + panel, bottom)
    lost = Box(accuracy.right + 24, top, accuracy.right + 24 + panel, bottom)
    metric = card.metric
    accuracy_scale = Scale(0, 100, accuracy.left, accuracy.right)
    losses = [axis for axis in card.stresses if not axis.is_background_alone]
    shares = [share for axis in losses if (share := axis.estimates["skill_lost"][metric]).has_mean]
    lost_scale = Scale.around([0.0, *(end for share in shares for end in ends(share))], lost.left, lost.right, 0.04)
    parts = [
        *x_axis(accuracy_scale, accuracy, "accuracy (%)" if metric == "acc" else "worst-class accuracy (%)"),
        *x_axis(lost_scale, lost, "skill lost (%)"),
        line(lost_scale(0), lost.top, lost_scale(0), lost.bottom, "axis"),
    ]
    for number, axis in enumerate(card.axes):
        y = top + STEP * (number + 0.5)
        parts.append(row_name(axis.name, NAME_LENGTH, left - 6, y + 3.5))
        parts += _accuracy_marks(card, axis, accuracy_scale, y)
        parts += _lost_marks(card, axis, lost_scale, lost, y)
    chance = next((axis.chance[metric] for axis in card.axes if metric in axis.chance), None)
    if chance is not None:
        x = accuracy_scale(chance)
        parts += [line(x, top, x, bottom, "reference"), text(x, top - 6, f"chance {percent(chance)}", "middle", "tick")]
    description = f"Accuracy and skill lost of {card.title} on {len(card.axes)} axes. The table has the values."
    return picture(lost.right + 12, bottom + 40, description, parts)


def _accuracy_marks(card: Card, axis: CardAxis, scale: Scale, y: float) -> list[Markup]:
    parts = [
        _stroke(scale(baseline.accuracy[card.metric]), y, f"{baseline.method} on {baseline.encoder}")
        for baseline in axis.baselines
    ]
    if axis.reference is not None:
        reference = axis.estimates["reference_accuracy"][card.metric]
        tooltip = f"{axis.reference.sampler}: {percent(reference.mean)} {bounds(reference)}"
        parts.append(marker(scale(reference.mean), y, _ON_REFERENCE, tooltip))
    accuracy = axis.estimates["accuracy"][card.metric]
    parts.append(whisker(scale, accuracy, y, f"whisker strong c{_ON_AXIS}"))
    parts.append(marker(scale(accuracy.mean), y, _ON_AXIS, f"{axis.name}: {percent(accuracy.mean)} {bounds(accuracy)}"))
    return parts


def _lost_marks(card: Card, axis: CardAxis, scale: Scale, frame: Box, y: float) -> list[Markup]:
    share = axis.number("skill_lost", card.metric)
    if share is None or not share.has_mean or axis.is_background_alone:
        return []
    losses = [
        (baseline, baseline.skill_lost[card.metric])
        for baseline in axis.baselines
        if card.metric in baseline.skill_lost
    ]
    parts = [
        _stroke(scale(loss), y, f"{baseline.method} on {baseline.encoder}")
        for baseline, loss in losses
        if frame.left <= scale(loss) <= frame.right
    ]
    parts.append(whisker(scale, share, y, f"whisker strong c{_ON_AXIS}"))
    tooltip = f"{axis.name}: {percent(share.mean)}% {bounds(share)}"
    parts.append(marker(scale(share.mean), y, _ON_AXIS, tooltip))
    return parts


def _stroke(x: float, y: float, tooltip: str) -> Markup:
    return element("line", element("title", tooltip), x1=x, y1=y - 5, x2=x, y2=y + 5, class_="whisker c6")


def badge(card: Card) -> str:
    """Draw the badge, an SVG of one line: the axis on which most skill is conclusively lost, with its interval."""
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
    """Write the text of the badge, which never claims more than an interval supports."""
    losing = [stress for stress in card.stresses if stress.conclusion == "+" and not stress.is_background_alone]
    if not card.stresses:
        return "no stress measured"
    if not losing:
        return f"no loss shown on {counted(len(card.stresses), 'axis', 'axes')}"
    worst = max(losing, key=lambda stress: stress.estimates["skill_lost"][card.metric].mean)
    share = worst.estimates["skill_lost"][card.metric]
    return typeset(f"{worst.name} loses {share.low:.0f} to {share.high:.0f}% of skill")
