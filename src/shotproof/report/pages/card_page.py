"""Robustness card as one page that opens offline, with its figure and badge as separate files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import Card, CardAxis, CardCost
from shotproof.comparison.card_remedies import remedy_sentence
from shotproof.comparison.numbers import typeset
from shotproof.core.errors import InputError
from shotproof.core.storage.whole_files import write_text
from shotproof.report.figures.card_figure import PHONE_PANEL, axes_figure, badge
from shotproof.report.figures.svg import marker, write_svg
from shotproof.report.pages.album import CONTEXT, Album, Thumbnail
from shotproof.report.pages.axis_tables import NAMES
from shotproof.report.pages.render import render
from shotproof.stats.costs import MIN_TASKS

PAGE_FILE, FIGURE_FILE, BADGE_FILE = "card.html", "card.svg", "badge.svg"


@dataclass(frozen=True)
class ShownCost:
    """Cost of an attribute or context, with one example task."""

    cost: CardCost
    name: str
    task: int
    support: list[Thumbnail]
    missed: list[Thumbnail]


def write_card_page(folder: Path, card: Card, catalog: Catalog | None = None) -> None:
    """Write card.html, card.svg and badge.svg.

    Args:
        folder: folder for the files
        card: card to show
        catalog: catalog with the files of the examples; without it the page shows no examples
    """
    album = Album()
    figure = axes_figure(card)
    context: dict[str, Any] = {
        "title": f"How robust is {card.title}?",
        "card": card,
        "medium": card.medium,
        "verdict": [typeset(sentence) for sentence in card.verdict],
        "remedies": remedy_sentence(card.remedies),
        "figure": figure,
        "phone_figure": axes_figure(card, PHONE_PANEL),
        "keys": [(marker(5, 5, 0), "on the axis"), (marker(5, 5, 6), "on its reference")],
        "axes": [
            (axis, NAMES.get(axis.axis, "Other tasks"), _show_costs(axis, album, catalog, card)) for axis in card.axes
        ],
        "album": album,
        "min_tasks": MIN_TASKS,
    }
    write_text(folder / PAGE_FILE, render("card.html", context))
    write_svg(folder / FIGURE_FILE, figure, typeset(f"{card.title}, {card.name}"))
    write_text(folder / BADGE_FILE, badge(card))


def _show_costs(axis: CardAxis, album: Album, catalog: Catalog | None, card: Card) -> list[ShownCost]:
    """Build the costs of an axis with their examples, as far as the catalog has their items."""
    shown_costs = []
    column = card.context if axis.axis == "contexts" else CONTEXT
    for cost in axis.costs:
        for example in cost.examples if catalog is not None else ():
            assert catalog is not None
            try:
                support, missed = (
                    album.thumbnails(list(items), catalog, column) for items in (example.support, example.missed)
                )
            except InputError:  # the example belongs to another catalog
                continue
            name = catalog.class_names.get(example.label, example.label)
            shown_costs.append(ShownCost(cost, name, example.task, support, missed))
    return shown_costs
