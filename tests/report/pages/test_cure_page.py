"""The page of a cure, and its section on a report: every remedy with its numbers, and labels that are no markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from shotproof.cures.cure import Cure, NotTried, ToCollect
from shotproof.report.pages.cure_page import cure_part, write_cure_page
from tests.drawn_cures import full_cure, make_cure, make_effect, make_row

SCRIPT = "<script>window.broken = true</script>"


def page_of(cure: Cure, folder: Path) -> str:
    write_cure_page(folder / "cure.html", cure)
    return (folder / "cure.html").read_text()


def table_of(page: str, axis: str) -> str:
    """The table of a task set."""
    return page.partition(f">{axis}</h3>")[2].partition("</table>")[0]


def test_the_page_has_every_remedy_with_its_interval_and_the_cure_itself(tmp_path: Path) -> None:
    cure = full_cure()
    page = page_of(cure, tmp_path)
    table = table_of(page, "fewstab").replace("<wbr>", "")
    rows = table.split("<tr>")[2:]
    assert len(rows) == len(cure.tried)
    for row, tried in zip(rows, cure.tried, strict=True):
        (effect, *_) = tried.effects
        assert tried.remedy in row
        assert tried.treatment.replace(">", "&gt;") in row
        assert effect.outcome in row
        for number in (effect.before.mean, effect.before.low, effect.difference.low, effect.difference.high):
            assert f"{abs(number):.1f}" in row
        assert ("take this" in row) == (tried.remedy == "wccn")
    assert "about 1,234 more tasks" in table_of(page, "ood")
    for text in ("center-contexts: the data has no contexts", "did not take part in choosing", "duck", "water", "12.5"):
        assert text in page
    inside = re.search(r'<script type="application/json" id="cure-data">(.*?)</script>', page, re.DOTALL)
    assert inside
    assert json.loads(inside[1]) == cure.to_json()


def test_the_sentences_lead_and_say_how_to_apply_it(tmp_path: Path) -> None:
    cure = full_cure()
    page = page_of(cure, tmp_path)
    paragraphs = re.findall(r'<p class="(?:lead|finding)">', page)
    assert len(paragraphs) == len(cure.sentences()) == 5
    steps = page.partition('<ul class="steps"')[2].partition("</ul>")[0]
    assert steps.count("<li>") == 3
    assert "cure/wccn.parquet" in steps
    nothing = page_of(make_cure([make_row("wccn", make_effect(1.0, 0.5))]), tmp_path)
    assert "nothing to cure" in nothing
    assert "How to apply it" not in nothing
    assert "take this" not in nothing


def test_a_number_that_is_none_is_a_dash(tmp_path: Path) -> None:
    page = page_of(full_cure(), tmp_path)
    assert ">–</td>" in table_of(page, "fewstab")
    assert not re.search(r">\s*nan", page)


def test_names_that_are_markup_stay_text(tmp_path: Path) -> None:
    row = make_row(
        SCRIPT,
        make_effect(40.0, 15.0, "helps", axis=SCRIPT),
        treatment=SCRIPT,
        baseline=SCRIPT,
        plain=SCRIPT,
        apply=(SCRIPT,),
    )
    cure = replace(
        make_cure([row], collect=(ToCollect(SCRIPT, SCRIPT, 9, 1, 5.0, 6),), notes=(SCRIPT,)),
        encoder=SCRIPT,
        method=SCRIPT,
        design=SCRIPT,
        not_tried=(NotTried(SCRIPT, SCRIPT),),
    )
    page = page_of(cure, tmp_path)
    assert SCRIPT not in page
    assert "&lt;script&gt;" in page
    inside = re.search(r'id="cure-data">(.*?)</script>', page, re.DOTALL)
    assert inside
    assert json.loads(inside[1]) == cure.to_json()


def test_the_part_for_templates_has_each_task_set_once() -> None:
    part = cure_part(full_cure())
    assert part["axes"] == ["fewstab", "ood"]
    assert [entry["row"].remedy for entry in part["rows"]] == ["wccn", "preprocess", "copies"]
    assert len(part["sentences"]) == 5
