"""The report in a real browser: it asks for nothing, runs nothing but its own script, and works by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from playwright.sync_api import Browser, Page

from shotproof.catalog.catalog import Catalog
from shotproof.media.clip import RATE
from shotproof.report.pages.card_page import write_card_page
from tests.browser.regions import cut_regions, shaded_edges, unreachable_regions
from tests.context_data import sample_context
from tests.drawn_cards import make_card, random_axis, stress_axis
from tests.drawn_results import draw_results, draw_tasks
from tests.report_files import make_experiment, make_results, write_report

pytestmark = pytest.mark.browser

SCRIPT = "<script>window.broken = true</script>"
IMAGE = '"><img src=x onerror="window.broken = true">'


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    names = ("ant", SCRIPT, IMAGE, "an extraordinarily-long_label_without_any_space_in_it_at_all/and/more")
    results, tasks, catalog = make_experiment(folder, labels=names, attributes=names, encoder=IMAGE)
    (folder / "0-1.png").write_text("broken")
    write_report(folder / "report.html", results, tasks=tasks, catalog=catalog, title=SCRIPT)
    return folder / "report.html"


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    yield from opened_page(browser, report)


def opened_page(browser: Browser, report: Path) -> Iterator[Page]:
    """The opened report; in the end nothing may have been requested, logged or broken."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: said.append(request.url) if not request.url.startswith("data:") else None)
    opened.goto(report.as_uri())
    yield opened
    assert said == [report.as_uri()]
    assert opened.evaluate("window.broken") is None
    context.close()


def column(page: Page, number: int) -> list[float]:
    cells = page.locator("#axis-attributes table.sortable tbody tr")
    return [float(value) for value in cells.evaluate_all(f"rows => rows.map(r => r.cells[{number}].dataset.value)")]


def test_labels_are_shown_as_text(page: Page) -> None:
    assert page.locator("h1").inner_text() == SCRIPT
    page.locator("details.task summary").nth(1).click()
    for name in (SCRIPT, IMAGE):
        assert page.locator(".about strong", has_text=name).first.inner_text() == name


def test_the_table_sorts_by_keyboard(page: Page) -> None:
    heading = page.locator("#axis-attributes table.sortable thead th", has_text="Gap in wAcc")
    number = heading.evaluate("cell => cell.cellIndex")
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column(page, number) == sorted(column(page, number))
    page.keyboard.press("Space")
    assert heading.get_attribute("aria-sort") == "descending"
    assert column(page, number) == sorted(column(page, number), reverse=True)
    assert page.locator("#axis-attributes .announce").inner_text() == "Sorted by Gap in wAcc, descending."


def test_choosing_a_classifier_by_keyboard_changes_the_marks(page: Page) -> None:
    def missed() -> list[list[int]]:
        marked: list[list[int]] = page.evaluate(
            "[...document.querySelectorAll('.task .query ul')].map(list =>"
            " [...list.children].flatMap((item, i) => item.classList.contains('missed') ? [i] : []))"
        )
        return marked

    marks = page.evaluate("JSON.parse(document.getElementById('gallery-marks').textContent)")
    assert missed() == [positions for task in marks for positions in task[0]["missed"]]
    page.locator("#classifier").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#classifier").input_value() == "1"
    assert missed() == [positions for task in marks for positions in task[1]["missed"]]
    scores = page.locator(".task .score").all_text_contents()
    assert scores == [f"{correct} of 4 correct" for task in marks for correct in task[1]["correct"]]


def test_thumbnails_are_drawn(page: Page) -> None:
    for summary in page.locator("details.task summary").all()[1:]:
        summary.focus()
        page.keyboard.press("Enter")
    page.wait_for_function("() => [...document.images].every(image => image.naturalWidth)")
    widths = page.locator("img").evaluate_all("images => images.map(image => image.naturalWidth)")
    assert set(widths) == {96}
    assert page.locator(".broken").first.inner_text() == "ant/1"


def test_the_interval_is_explained_on_focus_and_closed_by_escape(page: Page) -> None:
    tip = page.locator("#tip-lead-sampler")
    assert not tip.is_visible()
    page.locator("[aria-describedby=tip-lead-sampler]").focus()
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_the_first_tab_stop_skips_to_the_results(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_themes(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    ratios = page.evaluate(
        """() => {
        const light = (colour) => {
          const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
          const [r, g, b] = parts.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const paper = light(getComputedStyle(document.body).backgroundColor);
        const contrast = (colour) => {
          const [a, b] = [light(colour), paper].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05);
        };
        return [...document.querySelectorAll("p, td, th, dd, .half, a, summary, svg text")].map((element) => {
          const style = getComputedStyle(element);
          return contrast(element instanceof SVGElement ? style.fill : style.color);
        });
      }"""
    )
    assert min(ratios) >= 4.5


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_page_does_not_scroll_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 740})
    page.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_interval_is_explained_on_hover_and_focus(page: Page) -> None:
    for term in page.locator("button.term").all():
        tip = page.locator(f"#{term.get_attribute('aria-describedby')}")
        assert not tip.is_visible()
        term.focus()
        assert tip.is_visible()
        assert tip.inner_text().count(". ") == 0
        term.blur()
        term.hover()
        assert tip.is_visible()
        page.mouse.move(0, 0)


def test_the_matrix_tells_each_pair(page: Page) -> None:
    comparison = page.evaluate("JSON.parse(document.getElementById('comparison').textContent)")
    panel = page.locator("#methods .panel").first
    pairs = [
        one for one in comparison["pairs"] if one["metric"] == "acc" and one["tasks"] == "random" and one["shot"] == 1
    ]
    signs = {(pair["a"], pair["b"]): pair["conclusion"] for pair in pairs}
    names = panel.locator("tbody th").all_inner_texts()
    turned = {"+": "−", "0": "0", "-": "+"}
    for a, row in zip(names, panel.locator("tbody tr").all(), strict=True):
        found = [text.strip() for text in row.locator("td.sign").all_inner_texts()]
        expected = [
            "" if a == b else signs[a, b].replace("-", "−") if (a, b) in signs else turned[signs[b, a]] for b in names
        ]
        assert found == expected
    conclusive = sum(pair["conclusion"] != "0" for pair in pairs)
    told = panel.locator(".aside").inner_text()
    assert f"{len(pairs)} pairs" in told
    assert f"sampler: {conclusive}." in told


def test_the_plan_marks_its_best_number_of_queries(page: Page) -> None:
    figure = page.locator("#plan svg").first
    assert figure.locator("path.curve").count() == 1
    assert figure.locator("text.value", has_text="best").count() == 1


@pytest.fixture(scope="module")
def sound_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Context tasks on tones: a class is a pitch, a context another."""
    folder = tmp_path_factory.mktemp("sounds")
    seconds = np.arange(RATE * 5) / RATE
    rows = []
    for c, label in enumerate(("ant", "bee", "cat")):
        for k, context in enumerate(("rain", "wind", "sea")):
            for i in range(4):
                path = f"{c}-{k}-{i}.flac"
                tones = np.sin(2 * np.pi * 400 * (c + 1) * seconds) + np.sin(2 * np.pi * (2000 + 900 * k) * seconds)
                soundfile.write(folder / path, 0.2 * tones, RATE)
                rows.append({"item": path, "path": path, "label": label, "split": "test", "context": context})
    catalog = Catalog(pa.Table.from_pylist(rows), folder)
    sets = sample_context(catalog, way=3, shot=2, query=2, tasks=5)
    results = [make_results(tasks, "tones", {"ncc": 0.5}, seed) for seed, tasks in enumerate(sets.values())]
    write_report(folder / "report.html", results, tasks=list(sets.values()), catalog=catalog)
    return folder / "report.html"


def test_sounds_are_played_and_stopped(browser: Browser, sound_report: Path) -> None:
    for page in opened_page(browser, sound_report):
        first, second = (page.locator("details.task[open] button.play").nth(place) for place in (0, 7))
        first.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("() => player.currentTime > 0.2")
        assert abs(page.evaluate("player.duration") - 5) < 0.2
        second.click()
        assert (first.get_attribute("aria-pressed"), second.get_attribute("aria-pressed")) == ("false", "true")
        page.wait_for_function("() => !player.paused && player.currentTime > 0.1")
        second.click()
        assert page.evaluate("player.paused")
        assert second.get_attribute("aria-pressed") == "false"
        picture = first.locator("img")
        page.wait_for_function("[...document.images].every(image => image.complete)")
        assert picture.evaluate("image => image.naturalWidth") == 96
        assert picture.get_attribute("alt").startswith("play support 1: ")  # type: ignore[union-attr]
        assert page.locator("#axis-contexts figure svg[role=img]").count() > 0


@pytest.mark.parametrize("width", [1280, 390])
def test_a_card_fits_the_screen_and_its_labels_run_nothing(browser: Browser, tmp_path: Path, width: int) -> None:
    card = replace(make_card(random_axis(), replace(stress_axis(), name=SCRIPT)), method=IMAGE, verdict=(SCRIPT,))
    write_card_page(tmp_path, card)
    for page in opened_page(browser, tmp_path / "card.html"):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("window.broken === undefined")
        assert page.locator("h1").inner_text() == f"How robust is {IMAGE} on lite0?"
        page.locator("button.sort").nth(1).press("Enter")
        assert page.locator("th[aria-sort=ascending], th[aria-sort=descending]").count() == 1


@pytest.fixture(scope="module")
def wide_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All columns that the main table can have: of several encoders, methods, sizes and samplers, with placebos."""
    path = tmp_path_factory.mktemp("wide") / "report.html"
    results = []
    for shot in (1, 2):
        inside = draw_tasks("iid", shot=shot)
        sets = {
            "iid": (inside, 0.9),
            **{name: (draw_tasks(name, shot=shot, like=inside), 0.5) for name in ("ood", "hard-ood")},
        }
        for tasks, share in sets.values():
            for given, accuracy in ((tasks, share), (draw_tasks("placebo", shot=shot, like=tasks), 0.8)):
                for encoder in ("hf:facebook/dinov2-small", "encoder_without_any_space_in_its_name", "lite0"):
                    methods = {"laplacianshot": accuracy, "simpleshot(form='cl2n')": accuracy - 0.1}
                    results.append(draw_results(given, methods, encoder, seed=shot))
    write_report(path, results)
    return path


def test_the_main_table_lies_within_a_screen_of_1300_pixels(browser: Browser, wide_report: Path) -> None:
    for page in opened_page(browser, wide_report):
        page.set_viewport_size({"width": 1300, "height": 900})
        heads = page.locator("#axis-contexts table.sortable thead th")
        assert heads.count() == 15
        table = page.locator("#axis-contexts table.sortable")
        beyond = table.evaluate(
            """table => [...table.querySelectorAll("*")]
              .filter((part) => part.getBoundingClientRect().right > document.documentElement.clientWidth - 20)
              .map((part) => part.outerHTML)"""
        )
        assert beyond == []
        assert cut_regions(page) == []


def test_a_region_that_scrolls_shows_it_at_the_edge_where_there_is_more(browser: Browser, wide_report: Path) -> None:
    for page in opened_page(browser, wide_report):
        page.set_viewport_size({"width": 400, "height": 800})
        assert cut_regions(page)[0] == "axis-contexts-heading"
        assert unreachable_regions(page) == []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            region = page.locator("#axis-contexts .scroll")
            region.evaluate("box => { box.scrollLeft = 0; }")
            left, right = shaded_edges(page, region)
            assert left < 0.5 < 0.95 < right
            region.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
            left, right = shaded_edges(page, region)
            assert right < 0.5 < 0.95 < left


def test_a_table_out_of_sight_takes_no_more_room_than_it_needs(page: Page) -> None:
    rooms = page.locator(".scroll:not(.long)").evaluate_all(
        "boxes => boxes.filter((box) => box.checkVisibility() && box.querySelector('table'))"
        ".map((box) => box.clientHeight - box.scrollHeight + box.offsetHeight - box.firstElementChild.offsetHeight)"
    )
    assert rooms
    assert max(rooms) < 60  # e.g. a note below a table


def test_a_printed_page_cuts_no_table(browser: Browser, wide_report: Path) -> None:
    for page in opened_page(browser, wide_report):
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 703, "height": 1000})  # A4 with margins of 12 mm
        assert page.evaluate("document.documentElement.scrollWidth") <= 703


def test_a_card_shows_its_figure_whole_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    write_card_page(tmp_path, make_card())
    for page in opened_page(browser, tmp_path / "card.html"):
        for width, shown, hidden in ((1300, ".on-wide", ".on-phone"), (400, ".on-phone", ".on-wide")):
            page.set_viewport_size({"width": width, "height": 800})
            assert not page.locator(f"#side-by-side {hidden}").is_visible()
            box = page.locator(f"#side-by-side {shown} svg").bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        assert cut_regions(page) == ["table-heading"]
        assert unreachable_regions(page) == []
        assert shaded_edges(page, page.locator("#table .scroll"))[1] > 0.95
