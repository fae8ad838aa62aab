"""The page says what the kept results and the papers' figures give."""

from __future__ import annotations

import re
from pathlib import Path

from reproduction.document import DOCUMENT, all_sections, derived
from reproduction.figures import FOLDER, write_figures


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


def test_the_figures_are_those_that_are_derived_and_all_are_shown(tmp_path: Path) -> None:
    written = write_figures(tmp_path)
    assert [one.name for one in written if one.read_bytes() != (FOLDER / one.name).read_bytes()] == []
    shown = re.findall(r"\]\(\.\./figures/reproduction/([\w-]+\.svg)\)", DOCUMENT.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(one.name for one in written) == sorted(path.name for path in FOLDER.iterdir())
