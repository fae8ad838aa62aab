"""What is lost, one section per axis, whatever else is on the page."""

from __future__ import annotations

import html
import math
import re
from pathlib import Path

import pytest

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.numbers import percent
from shotproof.comparison.summary import terms
from shotproof.report.pages.axis_tables import alone_rows, axis_sections
from shotproof.report.pages.content import PageContent
from shotproof.report.pages.page import write_page
from shotproof.results.results import Results
from tests.drawn_results import draw_results, draw_tasks
from tests.html_page import Page

METHODS = {"ncc": 0.9, "knn": 0.6, "floor": 1 / 3}


def results() -> dict[str, Results]:
    plain, inside, biased = draw_tasks(tasks=60), draw_tasks("iid", tasks=60), draw_tasks("fewstab", tasks=60)
    sets = {
        "random": plain,
        "fewstab": biased,
        "placebo": draw_tasks("placebo", like=biased),
        "iid": inside,
        "hard-ood": draw_tasks("hard-ood", like=inside),
        "hardest": draw_tasks("hardest", like=plain),
        "depletion": draw_tasks("depletion", tasks=60),
    }
    lower = {"fewstab": 0.3, "hard-ood": 0.2, "hardest": 0.25}
    return {
        label: draw_results(
            tasks,
            {name: max(share - lower.get(label, 0.0) * (name != "floor"), 0.1) for name, share in METHODS.items()},
            seed=place,
        )
        for place, (label, tasks) in enumerate(sets.items())
    }


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(list(results().values()), intervals="sampler")


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("page") / "r.html"
    write_page(path, PageContent("title", comparison, Inputs(list(results().values()))))
    return Page(path)


def test_each_axis_has_its_sets_and_their_references(comparison: Comparison) -> None:
    found = {
        axis_section.axis: (axis_section.references, axis_section.sets, axis_section.has_placebo)
        for axis_section in axis_sections(comparison)
    }
    assert found == {
        "attributes": (["random"], ["fewstab"], True),
        "contexts": (["iid"], ["hard-ood"], False),
        "difficulty": (["random"], ["hardest"], False),
    }
    assert {row.tasks for row in alone_rows(comparison)} == {"depletion"}


def test_ranks_are_by_the_skill_that_is_lost(comparison: Comparison) -> None:
    section = axis_sections(comparison)[0]
    beside = [row for gap in section.rows if (row := comparison.matching_row(gap, "skill_lost"))]
    ranks = {row.classifier.method: row.rank for row in beside}
    assert ranks["floor"] is None
    lost = {row.classifier.method: row.interval.mean for row in beside}
    assert math.isnan(lost["floor"])
    assert lost["knn"] > lost["ncc"]
    assert [str(ranks[name]) for name in ("ncc", "knn")] == ["1 of 2", "2 of 2"]


def test_the_page_has_a_section_for_each_and_says_who_has_nothing_to_lose(page: Page, comparison: Comparison) -> None:
    sections = [given.get("id") for tag, given, _ in page.elements if tag == "section"]
    assert sections[:4] == ["axis-attributes", "axis-contexts", "axis-difficulty", "alone"]
    links = [given.get("href") for tag, given, _ in page.elements if tag == "a"]
    assert {f"#{name}" for name in sections[:4]} <= set(links)
    # In each of three sections, of Acc and of wAcc.
    assert page.find("td", **{"class": "number none"}).count("nothing to lose") == 3 * 2
    for row in comparison.rows("excess", "wacc"):
        cells = page.find("td", **{"data-value": str(row.interval.mean)})
        assert f"{percent(row.interval.mean)} ".replace("-", "−") in cells
    assert "Beyond placebo, Acc" in page.find("button", **{"class": "sort"})


def test_a_section_is_the_same_whatever_else_is_on_the_page(comparison: Comparison) -> None:
    given = results()
    alone = axis_sections(compare([given["iid"], given["hard-ood"]], intervals="sampler"))
    (beside,) = (axis_section for axis_section in axis_sections(comparison) if axis_section.axis == "contexts")
    assert [one.axis for one in alone] == ["contexts"]
    assert [row.interval for row in alone[0].rows] == [row.interval for row in beside.rows]
    assert [figure for _, figure in alone[0].skill.panels] == [figure for _, figure in beside.skill.panels]


def test_headlines_and_steps_stand_first(page: Page, comparison: Comparison) -> None:
    marked = re.findall(r'<p class="lead">(.*?)</p>', page.text)
    without_tips = [re.sub(r'<span role="tooltip".*?</span>', "", sentence) for sentence in marked]
    told = [html.unescape(re.sub(r"<.*?>", "", sentence)) for sentence in without_tips]
    assert told == [sentence.replace(" -", " −").replace("[-", "[−") for sentence in comparison.verdict()]
    explained = re.findall(r'<button type="button" class="term"[^>]*>([^<]+)</button>', " ".join(marked))
    assert {"fewstab", "hard-ood", "placebo"} <= set(explained) <= {term.word for term in terms(comparison)}
    assert len(explained) == len(set(explained))
    assert page.find("ul", **{"class": "steps"})


def test_references_without_other_tasks_stand_alone(tmp_path: Path) -> None:
    given = results()
    comparison = compare([given["random"], given["iid"]], intervals="sampler")
    assert axis_sections(comparison) == []
    write_page(tmp_path / "r.html", PageContent("title", comparison, Inputs([given["random"], given["iid"]])))
    page = Page(tmp_path / "r.html")
    assert page.find("h2", id="alone-heading") == ["Results"]
    assert {row.tasks for row in alone_rows(comparison)} == {"random", "iid"}


def bar_names(panel: str) -> list[str]:
    """The names beside the bars, from the top down."""
    return re.findall(r'class="name">([^<]+)<', panel)


def test_one_method_on_several_encoders_has_one_panel_with_a_bar_each_in_the_order_of_the_table() -> None:
    encoders = ("lite0", "model:nets/b.model", "model:nets/a.model")
    sets = (draw_tasks(tasks=60), draw_tasks("fewstab", tasks=60))
    given = [draw_results(tasks, {"ncc": 0.8}, encoder) for encoder in encoders for tasks in sets]
    section = axis_sections(compare(given, intervals="sampler"))[0]
    assert [row.classifier.encoder for row in section.rows] == list(encoders)
    for figure in (section.points, section.skill):
        ((name, panel),) = figure.panels
        assert (name, bar_names(panel)) == ("ncc", ["lite0", "b", "a"])
    assert section.labels == "encoder"


def test_several_methods_have_a_panel_per_encoder() -> None:
    encoders = ("lite0", "pixels")
    sets = (draw_tasks(tasks=60), draw_tasks("fewstab", tasks=60))
    given = [draw_results(tasks, {"ncc": 0.8, "knn": 0.7}, encoder) for encoder in encoders for tasks in sets]
    section = axis_sections(compare(given, intervals="sampler"))[0]
    assert [(name, bar_names(panel)) for name, panel in section.points.panels] == [
        ("lite0", ["ncc", "knn"]),
        ("pixels", ["ncc", "knn"]),
    ]
    assert section.labels == "method"
