"""The pages say what the kept results and the papers' figures give."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from reproduction.document import RESULTS, all_pages, all_sections, fill_sections
from reproduction.figures import FOLDER, write_figures
from reproduction.sections.sound_statements import FAILS, HOLDS, OPEN


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.stem)
def test_the_tables_are_those_that_are_derived(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == fill_sections(text), "make reproduction writes them anew"


def test_every_derived_section_has_one_place() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in all_pages())
    begun = re.findall(r"^<!-- reproduction:([\w-]+) -->$", text, re.MULTILINE)
    assert sorted(begun) == sorted(all_sections())
    assert re.findall(r"^<!-- /reproduction:([\w-]+) -->$", text, re.MULTILINE) == begun


def test_a_mark_within_a_line_is_not_filled() -> None:
    text = "text <!-- reproduction:oops -->\n| wrong |\n<!-- /reproduction:oops -->\n"
    assert fill_sections(text) == text


@pytest.mark.parametrize("page", ["reproduction.md", "reproduction-spuraudio.md"])
def test_the_summary_counts_the_verdicts_of_the_table(page: str) -> None:
    verdicts = Counter(line.split("|")[-2].strip() for line in all_sections()["sounds-statements"].splitlines()[2:])
    hold, fail, unclear = (verdicts.pop(verdict) for verdict in (HOLDS, FAILS, OPEN))
    summary = " ".join((RESULTS / page).read_text(encoding="utf-8").split("\n\n")[1].split())
    sized = sum(verdicts.values())
    assert re.search(rf"{hold} hold .*{fail} do not\. {unclear} cannot be judged, and {sized} .* size\.", summary)


def test_what_is_between_the_marks_is_replaced() -> None:
    text = "before\n<!-- reproduction:oops -->\n| wrong |\n<!-- /reproduction:oops -->\nafter\n"
    assert fill_sections(text) == (
        f"before\n<!-- reproduction:oops -->\n{all_sections()['oops']}<!-- /reproduction:oops -->\nafter\n"
    )


def test_the_figures_are_those_that_are_derived_and_all_are_shown(tmp_path: Path) -> None:
    written = write_figures(tmp_path)
    assert [path.name for path in written if path.read_bytes() != (FOLDER / path.name).read_bytes()] == []
    text = "".join(page.read_text(encoding="utf-8") for page in RESULTS.glob("*.md"))
    shown = re.findall(r"\]\(\.\./figures/reproduction/([\w-]+\.svg)\)", text)
    assert sorted(shown) == sorted(path.name for path in written) == sorted(path.name for path in FOLDER.iterdir())
