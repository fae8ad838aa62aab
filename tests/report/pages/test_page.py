from __future__ import annotations

import json
from pathlib import Path

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.comparison.numbers import percent
from shotproof.report.pages.content import PageContent, SetCosts
from shotproof.report.pages.page import write_page
from shotproof.stats.costs import AttributeCosts
from tests.drawn_results import draw_results, draw_tasks
from tests.html_page import Page
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def test_a_comparison_alone_makes_a_page_that_says_what_else_it_could_show(tmp_path: Path) -> None:
    results = make_experiment(tmp_path)[0]
    comparison = compare(results)
    write_page(tmp_path / "r.html", PageContent("title", comparison, Inputs(results)))
    page = Page(tmp_path / "r.html")
    assert page.find("h1") == ["title"]
    plan, attributes, why, tasks = page.find("p", **{"class": "missing"})
    assert "plan needs the catalog" in plan
    assert "needs the task files" in attributes
    assert "needs the attributes of the items and the task files" in why
    assert "need the task files and the catalog" in tasks


def test_numbers_are_shown_as_they_are(tmp_path: Path) -> None:
    results = make_experiment(tmp_path)[0]
    comparison = compare(results, level=0.9)
    write_page(tmp_path / "r.html", PageContent("title", comparison, Inputs(results)))
    page = Page(tmp_path / "r.html")
    shown = [row for row in comparison.all_rows if row.quantity in ("accuracy", "gap", "skill_lost")]
    assert len(shown) == 2 * len(comparison.rows()) + 4 * len(comparison.rows("gap")) > 0
    for row in shown:
        cells = page.find("td", **{"data-value": str(row.interval.mean)})
        assert f"{percent(row.interval.mean)} ".replace("-", "−") in cells
    assert any("90% " in text for text in page.find("p", id="axis-attributes-caption"))
    assert json.loads(page.find("script", id="comparison")[0])["level"] == 0.9


def test_encoders_that_are_files_have_short_names_and_the_provenance_says_which(tmp_path: Path) -> None:
    spellings = ("model:nets/a.model", "model:nets/b.model")
    results = [
        draw_results(tasks, {"ncc": 0.7, "knn": 0.6}, encoder)
        for tasks in (draw_tasks(), draw_tasks("fewstab"))
        for encoder in spellings
    ]
    write_page(tmp_path / "r.html", PageContent("title", compare(results), Inputs(results)))
    shown, _, rest = (tmp_path / "r.html").read_text().partition('<section id="provenance"')
    provenance = rest.partition("</section>")[0]
    assert "nets/" not in shown.partition("<body")[2]
    assert "<td>a</td>" in shown
    assert all(f"Encoder {name}: {spelling}." in provenance for name, spelling in zip("ab", spellings, strict=True))


def test_a_single_interval_has_its_notes_and_refusals_too(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, "random", seed=seed), "pixels", methods)
        for seed, methods in enumerate(({"ncc": 1.0, "knn": 0.5}, {"ncc": 1.0}))
    ]
    write_page(tmp_path / "r.html", PageContent("title", compare(results), Inputs(results)))
    page = Page(tmp_path / "r.html")
    told = page.find("p", **{"class": "missing"})
    assert any("No sampler interval: all 40 tasks have the same value" in reason for reason in told)
    asides = page.find("p", **{"class": "aside"})
    assert any("random: knn on pixels" in text and "not evaluated on all seeds" in text for text in asides)


def test_task_sets_without_a_classifier_in_common_make_a_page(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, sampler), "pixels", {method: 0.5})
        for sampler, method in (("random", "ncc"), ("fewstab", "knn"))
    ]
    write_page(tmp_path / "r.html", PageContent("title", compare(results), Inputs(results)))
    assert "no gap to report" in " ".join(Page(tmp_path / "r.html").find("p", **{"class": "lead"}))


def test_attributes_that_cost_nothing_are_told(tmp_path: Path) -> None:
    results = make_experiment(tmp_path)[0]
    costs = [SetCosts("fewstab, 3-way 1-shot", "ncc on pixels", AttributeCosts(4, []))]
    write_page(tmp_path / "r.html", PageContent("title", compare(results), Inputs(results), costs=costs))
    told = Page(tmp_path / "r.html").find("p", **{"class": "missing"})
    assert any("None of the 4 planted attributes" in text and "10 tasks" in text for text in told)
