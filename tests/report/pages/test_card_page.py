"""The card as a page: its numbers, what is not measured, and labels that are no markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
from PIL import Image

from shotproof.catalog.catalog import Catalog
from shotproof.comparison.card import Card, CardCost, CardExample, CardRemedy
from shotproof.report.figures.card_figure import badge, badge_text
from shotproof.report.pages.card_page import write_card_page
from tests.drawn_cards import card_number, make_card, random_axis, stress_axis

SCRIPT = "<script>window.broken = true</script>"


def costly_card(attribute: str = "dark") -> Card:
    """A card with an attribute that costs, and an example of it."""
    example = CardExample(3, "jay", ("a.png",), ("b.png",))
    cost = CardCost(attribute, card_number(24.0, 2.0), 20, 3, "jay", f"Add images without '{attribute}'.", (example,))
    return make_card(random_axis(), replace(stress_axis(), costs=(cost,)))


def test_the_page_has_every_axis_its_reasons_and_the_card_itself(tmp_path: Path) -> None:
    card = costly_card()
    write_card_page(tmp_path, card)
    page = (tmp_path / "card.html").read_text()
    for text in ("random-5-shot", "fewstab", "no column looks like contexts", "digest of fewstab", "1 to 2 of 3"):
        assert text in page
    inside = re.search(r'<script type="application/json" id="card">(.*?)</script>', page, re.DOTALL)
    assert inside
    assert Card.from_json(json.loads(inside[1])) == card


def test_one_shot_and_one_query_are_in_the_singular(tmp_path: Path) -> None:
    write_card_page(tmp_path, make_card(replace(stress_axis(), shot=1, query=1)))
    assert "600 tasks with 5 ways, 1 shot and 1 query per class" in (tmp_path / "card.html").read_text()


def test_examples_are_shown_where_the_catalog_has_their_files(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        Image.new("RGB", (8, 8)).save(tmp_path / name)
    columns = {"item": ["a.png", "b.png"], "path": ["a.png", "b.png"], "label": ["jay"] * 2, "split": ["all"] * 2}
    write_card_page(tmp_path, costly_card(), Catalog(pa.table(columns), tmp_path))
    page = (tmp_path / "card.html").read_text()
    assert page.count("data:image/jpeg;base64,") == 2
    assert "highest for jay; the example is from task 3." in page


def test_a_card_beside_another_catalog_shows_no_pictures_but_its_words(tmp_path: Path) -> None:
    columns = {"item": ["z"], "path": ["z.png"], "label": ["jay"], "split": ["all"]}
    write_card_page(tmp_path, costly_card(), Catalog(pa.table(columns), tmp_path))
    assert "Add images without &#39;dark&#39;." in (tmp_path / "card.html").read_text()


def test_labels_that_are_markup_stay_text(tmp_path: Path) -> None:
    card = replace(costly_card(SCRIPT), name=SCRIPT, method=SCRIPT, verdict=(SCRIPT,))
    card = replace(card, remedies=(CardRemedy("features", SCRIPT, axes=(SCRIPT,)),))
    axes = tuple(replace(axis, name=SCRIPT, conclusion="+" if axis.reference else None) for axis in card.axes)
    card = replace(card, axes=axes)
    write_card_page(tmp_path, card)
    assert SCRIPT not in (tmp_path / "card.html").read_text()
    for name in ("card.svg", "badge.svg"):
        assert SCRIPT not in (tmp_path / name).read_text()
        ElementTree.parse(tmp_path / name)


def test_the_badge_never_says_more_than_an_interval_does() -> None:
    assert badge_text(make_card()) == "fewstab loses 8 to 12% of skill"
    assert badge_text(make_card(random_axis(), stress_axis(lost=1.0))) == "no loss shown on 1 axis"
    assert badge_text(make_card(random_axis())) == "no stress measured"
    assert 'aria-label="robustness: fewstab loses 8 to 12% of skill"' in badge(make_card())


def test_the_page_states_the_remedy_and_nothing_without_one(tmp_path: Path) -> None:
    remedy = CardRemedy("features", "nap(by='words', directions=15)", 130)
    write_card_page(tmp_path, replace(costly_card(), remedies=(remedy,)))
    visible = (tmp_path / "card.html").read_text().partition("<script")[0]
    assert "nap(by=&#39;words&#39;, directions=15), fitted on 130 classes" in visible
    write_card_page(tmp_path, costly_card())
    assert "Measured with" not in (tmp_path / "card.html").read_text()
