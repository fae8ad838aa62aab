from __future__ import annotations

from xml.etree import ElementTree

from shotproof.comparison.compare_sets import compare_sets
from shotproof.results.evaluated import evaluated_sets
from tests.drawn_results import draw_results, draw_tasks


def test_a_notebook_shows_one_table_per_design() -> None:
    results = [
        draw_results(draw_tasks(sampler, data_set="<birds>", shot=shot), {"ncc": accuracy, "knn": 0.3})
        for sampler, accuracy in (("random", 0.9), ("fewstab", 0.5))
        for shot in (1, 2)
    ]
    comparison = compare_sets(evaluated_sets(results), ("sampler",))
    page = ElementTree.fromstring(f"<div>{comparison._repr_html_()}</div>")
    assert comparison._repr_html_() == comparison.to_html()
    first, second = page.findall("table")
    assert [table.findtext("caption") for table in (first, second)] == [
        f"<birds>, 3-way {shot}-shot, 4 queries per class, split test" for shot in (1, 2)
    ]
    heading = [cell.text for cell in first.findall("thead/tr/th")][:4]
    assert heading == ["random", "fewstab", "gap, random - fewstab", "skill lost, random - fewstab"]
    rows = first.findall("tbody/tr")
    assert [row.findtext("th") for row in rows] == ["ncc", "knn"]
    assert {len(row.findall("td")) for row in rows} == {8}
    mean = comparison.blocks[0].groups[0].rows[0].means["acc"]
    assert rows[0].findtext("td/b") == f"{mean:.1f}"


def test_a_classifier_that_was_not_evaluated_there_has_no_number() -> None:
    results = [draw_results(draw_tasks(), {"ncc": 0.5, "knn": 0.5}), draw_results(draw_tasks("fewstab"), {"ncc": 0.4})]
    page = ElementTree.fromstring(f"<div>{compare_sets(evaluated_sets(results), ('sampler',)).to_html()}</div>")
    cells = page.findall("table/tbody/tr")[1].findall("td")
    assert [cell.text for cell in cells[2:]] == ["–"] * 6
