"""The page says what the kept results and the papers' figures give."""

from __future__ import annotations

import re

from reproduction.document import DOCUMENT, all_sections, derived


def test_the_tables_are_those_that_are_derived() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == derived(text), "make reproduction writes them anew"


def test_every_derived_section_has_its_place() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert re.findall(r"<!-- reproduction:([\w-]+) -->", text) == list(all_sections())
    assert re.findall(r"<!-- /reproduction:([\w-]+) -->", text) == list(all_sections())


def test_what_is_between_the_marks_is_replaced() -> None:
    text = "before\n<!-- reproduction:oops -->\n| wrong |\n<!-- /reproduction:oops -->\nafter\n"
    assert derived(text) == (
        f"before\n<!-- reproduction:oops -->\n{all_sections()['oops']}<!-- /reproduction:oops -->\nafter\n"
    )
