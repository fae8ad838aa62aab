"""The explorer in a real browser: every filter, the keyboard, links, two themes, a phone, and labels that are code."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from playwright.sync_api import Browser, BrowserContext, Page

from shotproof.catalog.catalog import Catalog
from shotproof.media.clip import RATE
from shotproof.pipeline.explorer import read_site, write_site
from shotproof.report.explorer.server import ExplorerServer
from shotproof.results.answers import AnsweredTasks, answers_on
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.context_data import sample_context
from tests.explored_run import write_run
from tests.report_files import make_results

pytestmark = pytest.mark.browser

SCRIPT = "<script>window.broken = true</script>"
IMAGE = '"><img src=x onerror="window.broken = true">'
LABELS = ("ant", SCRIPT, IMAGE, "an extraordinarily-long_label_without_any_space_in_it_at_all/and/more")
FIRST, SECOND = f"ncc on {IMAGE}", "ridge on other encoder"
CONTRAST = """() => {
  const parts = (colour) => {
    const values = colour.match(/[\\d.]+/g).map(Number);
    return colour.startsWith("color(") ? values.slice(0, 4).map((v, i) => (i < 3 ? 255 * v : v)) : values;
  };
  const light = (values) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = values.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const values = parts(getComputedStyle(at).backgroundColor);
      if (values.length < 4 || values[3] > 0) return values;
    }
    return [255, 255, 255];
  };
  const texts = [...document.body.querySelectorAll("*")].filter((element) =>
    element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return texts.map((element) => {
    const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), element.className || element.tagName];
  });
}"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with ExplorerServer(read_site(folder), 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.url
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_run(tmp_path_factory.mktemp("run"), LABELS, LABELS, IMAGE)
    (made / "0-1.png").write_text("broken")
    return made


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def answered(folder: Path) -> AnsweredTasks:
    """What the second task set, FewSTAB with one shot, holds."""
    return answers_on(
        TaskSet.read(folder / "tasks-1.parquet"), [Results.read(file) for file in folder.glob("results-*.parquet")]
    )


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 700})
    made.set_default_timeout(20_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, url: str) -> Iterator[Page]:
    """The page; in the end nothing may have broken, and nothing been asked of any other place."""
    opened = context.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: None if request.url.startswith(url) else said.append(request.url))
    opened.goto(url)
    opened.wait_for_selector(".row")
    yield opened
    assert [line for line in said if "404 (Not Found)" not in line] == []  # the item whose file is broken
    assert opened.evaluate("window.broken") is None


def show(page: Page, url: str, **state: str | int) -> None:
    """Open a link to a view, as from elsewhere."""
    page.goto("about:blank")
    page.goto(f"{url}#{urlencode({'set': 1, **state})}")
    page.wait_for_function("() => document.getElementById('summary').textContent !== ''")


def listed(page: Page) -> int:
    """How many tasks are listed, as the page says."""
    return int(page.locator("#summary").inner_text().split()[0])


def rows(answered: AnsweredTasks, classifier: str) -> list[dict[str, Any]]:
    """The rows of the task set with a classifier's counts."""
    (answers,) = (answer for answer in answered.answers if str(answer.classifier) == classifier)
    table = answered.tasks.table.to_pylist()
    return [
        row | {"correct": int(answers.counts.n_correct[place]), "missed": answers.missed_at(place)}
        for place, row in enumerate(table)
    ]


def test_labels_are_text_wherever_they_stand(page: Page, url: str) -> None:
    show(page, url, a=FIRST, b=SECOND, **{"class": SCRIPT, "task": 3})
    assert page.locator("#class option:checked").inner_text() == SCRIPT
    assert page.locator("#a option:checked").inner_text() == FIRST
    page.wait_for_selector("#task h3")
    page.locator("#to-confusion").click()
    page.wait_for_selector("#confusion td button")
    names = page.locator(".confusions").first.locator("tbody th").all_inner_texts()
    assert names == sorted(LABELS)


def test_filters_list_the_tasks_that_fit(page: Page, url: str, answered: AnsweredTasks) -> None:
    first, second = rows(answered, FIRST), rows(answered, SECOND)

    def tasks(fits: Any) -> int:
        return len({row["task"] for row in first if fits(row)})

    def accuracy(given: list[dict[str, Any]], task: int) -> float:
        return float(np.mean([row["correct"] / 4 for row in given if row["task"] == task]))

    show(page, url, a=FIRST)
    assert listed(page) == 30
    page.select_option("#class", label=SCRIPT)
    assert listed(page) == tasks(lambda row: row["label"] == SCRIPT)
    page.select_option("#planted", label=IMAGE)
    both = tasks(lambda row: row["label"] == SCRIPT and row["attribute"] == IMAGE)
    assert listed(page) == both > 0
    page.select_option("#errors", "none")
    assert listed(page) == tasks(lambda row: row["label"] == SCRIPT and row["attribute"] == IMAGE and not row["missed"])
    page.locator("#clear").click()
    page.locator("#most").fill("50")
    page.keyboard.press("Enter")
    assert listed(page) == sum(accuracy(first, task) <= 0.5 for task in range(30))
    page.locator("#clear").click()
    page.select_option("#b", label=SECOND)
    page.select_option("#errors", "below")
    page.wait_for_function("() => document.getElementById('summary').textContent.includes(' of 30')")
    assert listed(page) == sum(accuracy(first, task) < accuracy(second, task) - 1e-9 for task in range(30))


def test_contexts_are_those_of_all_items_of_a_side(page: Page, url: str, folder: Path, answered: AnsweredTasks) -> None:
    catalog = Catalog.read(folder / "catalog.parquet")
    contexts = dict(zip(catalog.items, catalog.table.column("context").to_pylist(), strict=True))
    in_rain = {row["task"] for row in rows(answered, FIRST) if {contexts[item] for item in row["support"]} == {"rain"}}
    show(page, url, a=FIRST)
    page.select_option("#support", label="rain")
    assert listed(page) == len(in_rain) > 0


def test_the_lowest_accuracy_comes_first(page: Page, url: str, answered: AnsweredTasks) -> None:
    show(page, url, a=FIRST, order="lowest")
    shown = [float(text.removesuffix("%")) for text in page.locator(".row .value").all_inner_texts()]
    (answers,) = (answer for answer in answered.answers if str(answer.classifier) == FIRST)
    expected = np.sort(answers.counts.accuracy_by_task())[: len(shown)]
    np.testing.assert_allclose(shown, expected, atol=0.051)


def test_two_methods_are_marked_side_by_side(page: Page, url: str, answered: AnsweredTasks) -> None:
    show(page, url, a=FIRST, b=SECOND, task=4)
    page.wait_for_selector("#task h3")
    marked = page.locator("#task .query ul").evaluate_all(
        "lists => lists.map(list =>"
        " [...list.children].flatMap((item, i) => item.classList.contains('missed') ? [i] : []))"
    )
    expected = [
        one["missed"]
        for pair in zip(rows(answered, FIRST), rows(answered, SECOND), strict=True)
        for one in pair
        if one["task"] == 4
    ]
    assert marked == expected
    boxes = [box.bounding_box() for box in page.locator("#task .beside-methods").first.locator(".query").all()]
    assert boxes[0]["y"] == boxes[1]["y"]  # type: ignore[index]
    assert boxes[0]["x"] < boxes[1]["x"]  # type: ignore[index]
    taken = page.locator("#task .answer").first.get_attribute("title") or ""
    assert any(label in taken for label in LABELS)


def test_a_reason_frames_the_items_that_it_is_about(page: Page, url: str) -> None:
    show(page, url, a=FIRST, task=2)
    reason = page.locator(".reason").first
    reason.focus()
    page.keyboard.press("Enter")
    assert reason.get_attribute("aria-pressed") == "true"
    assert page.locator(".explored-class .holds").count() > 0
    page.keyboard.press("Enter")
    assert page.locator(".explored-class .holds").count() == 0


def test_it_opens_with_a_task_beside_the_list(page: Page, url: str) -> None:
    page.wait_for_selector("#task h3")
    assert page.locator("#task h2").inner_text() == "Task 0"
    assert page.locator("[aria-selected=true]").get_attribute("aria-posinset") == "1"
    assert page.url == url  # nobody has chosen it
    page.select_option("#order", "hardest")
    page.wait_for_function(
        "() => document.querySelector('#task h2').textContent === "
        "document.querySelector('[aria-selected=true] .task-number').textContent"
    )
    assert page.locator("[aria-selected=true]").get_attribute("aria-posinset") == "1"
    show(page, url, **{"class": "no such class"})
    page.wait_for_function("() => document.getElementById('task').textContent === 'No task matches the filters above.'")


def test_a_window_that_becomes_wider_shows_a_task_beside_the_list(page: Page, url: str) -> None:
    page.set_viewport_size({"width": 700, "height": 700})
    show(page, url)
    assert page.locator("#list").is_visible()
    assert page.locator("#task").is_hidden()
    page.set_viewport_size({"width": 1280, "height": 700})
    page.wait_for_selector("#task h3")
    assert page.locator("#list").is_visible()
    page.set_viewport_size({"width": 700, "height": 700})
    page.wait_for_selector("#task", state="hidden")
    assert page.locator("#list").is_visible()


@pytest.mark.parametrize("width", [1280, 700, 400])
def test_the_heads_of_the_list_stand_above_its_values(page: Page, url: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    show(page, url, a=FIRST, b=SECOND)
    ends = [
        [box["x"] + box["width"] for box in (one.bounding_box() for one in page.locator(f"{line} .value").all()) if box]
        for line in ("#columns", "#row-0")
    ]
    assert len(ends[0]) == 2
    assert ends[0] == pytest.approx(ends[1], abs=1)


def test_the_list_works_by_keyboard(page: Page) -> None:
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('#task h2')?.textContent === 'Task 1'")
    assert page.locator("[aria-selected=true]").get_attribute("aria-posinset") == "2"
    active = page.locator("#list").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active} .task-number").inner_text() == "Task 1"
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('#task h2')?.textContent === 'Task 29'")
    assert page.locator("[aria-selected=true]").is_visible()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.querySelector('#task h2')?.textContent === 'Task 0'")
    assert page.evaluate("document.activeElement.id") == "list"


def test_the_first_tab_stop_skips_to_the_list(page: Page, url: str) -> None:
    show(page, url, a=SECOND)
    before = page.url
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "list"
    assert page.url == before


def test_a_link_shows_the_same_and_back_undoes_a_step(page: Page, context: BrowserContext) -> None:
    page.select_option("#order", "hardest")
    page.select_option("#a", label=SECOND)
    page.locator(".row").nth(2).click()  # while the second method's counts may still be loading
    page.wait_for_function("name => document.getElementById('summary').textContent.includes(name)", arg=SECOND)
    page.wait_for_selector("#task h3")
    task, summary = page.locator("#task h2").inner_text(), page.locator("#summary").inner_text()
    other = context.new_page()
    other.goto(page.url)
    other.wait_for_selector("#task h3")
    assert other.locator("#task h2").inner_text() == task
    assert other.locator("#summary").inner_text() == summary
    assert other.locator("[aria-selected=true]").get_attribute("aria-posinset") == "3"
    other.locator("#to-confusion").click()
    other.wait_for_selector("#confusion table")
    other.go_back()
    other.wait_for_selector("#task h3")
    assert other.locator("#confusion").is_hidden()


@pytest.mark.parametrize("state", [{"set": "none"}, {"a": "none"}, {"task": 99}, {"order": "none"}, {"least": "x"}])
def test_a_link_to_what_is_not_there_shows_what_is(page: Page, url: str, state: dict[str, str | int]) -> None:
    show(page, url, **state)
    assert listed(page) == 30
    assert page.locator(".row").count() > 0


def test_an_unknown_class_in_a_link_lists_nothing(page: Page, url: str) -> None:
    show(page, url, **{"class": "no such class"})
    assert listed(page) == 0


def test_confused_classes_lead_to_their_tasks(page: Page, url: str, answered: AnsweredTasks) -> None:
    show(page, url, a=FIRST, view="confusion")
    page.wait_for_selector("#confusion table.compact")
    cells = page.locator("#confusion table.compact tbody tr").first.locator("th, td").all_inner_texts()
    truth, answer = cells[:2]
    first = rows(answered, FIRST)
    page.locator("#confusion .link").first.click()
    page.wait_for_selector(".row")
    with_both = [
        task
        for task in range(30)
        if {truth, answer} <= {row["label"] for row in first if row["task"] == task}
        and any(row["missed"] for row in first if row["task"] == task and row["label"] == truth)
    ]
    assert listed(page) == len(with_both) > 0


def test_an_item_that_cannot_be_shown_has_its_name(page: Page, url: str, answered: AnsweredTasks) -> None:
    task = next(row["task"] for row in answered.tasks.table.to_pylist() if "ant/1" in (*row["support"], *row["query"]))
    show(page, url, a=FIRST, task=task)
    page.wait_for_selector("#task .broken")
    assert page.locator("#task .broken").first.inner_text() == "ant/1"
    assert page.locator("#task img").count() > 0


def test_a_picture_is_enlarged_and_closed_by_keyboard(page: Page, url: str) -> None:
    show(page, url, a=FIRST, task=2)
    page.locator("#task .enlarge").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#large img')?.naturalWidth === 120")
    page.keyboard.press("Escape")
    assert page.locator("#large").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["tasks", "confusion"])
def test_text_stands_out_in_both_themes(page: Page, url: str, scheme: str, view: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    show(page, url, a=FIRST, b=SECOND, task=3, view=view)
    page.wait_for_selector("#confusion table" if view == "confusion" else "#task h3")
    assert min(page.evaluate(CONTRAST)) >= [4.5]


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_page_shows_the_list_or_the_task(page: Page, url: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 740})
    show(page, url, a=FIRST, b=SECOND)
    assert page.locator("#task").is_hidden()
    page.locator(".row").nth(1).click()
    page.wait_for_selector("#task h3")
    assert page.locator("#list").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.getElementById('task').scrollWidth <= document.getElementById('task').clientWidth")
    page.keyboard.press("Escape")
    assert page.locator("#list").is_visible()
    page.locator(".row").nth(1).click()
    page.wait_for_selector("#task h3")
    page.locator(".back").click()
    assert page.locator("#list").is_visible()
    page.locator("#filters summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_list_of_a_million_rows_holds_few_elements_and_ends_at_its_end(page: Page) -> None:
    found = page.evaluate(
        """async () => {
        const { List } = await import("./list.js");
        document.body.innerHTML = "";
        const box = document.createElement("div");
        Object.assign(box.style, { position: "relative", height: "500px", overflow: "auto" });
        box.append(document.createElement("div"), document.createElement("div"));
        document.body.append(box);
        const picked = [];
        const list = new List(box, (place) => [`row ${place}`], (index) => picked.push(index));
        list.show(Uint32Array.from({ length: 1_000_000 }, (_, place) => place), -1);
        box.dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
        const last = box.querySelector("[aria-selected=true]").getBoundingClientRect();
        const outer = box.getBoundingClientRect();
        return [picked, box.querySelectorAll("[role=option]").length, last.bottom - outer.bottom];
      }"""
    )
    picked, elements, beyond = found
    assert picked == [999_999]
    assert elements < 40
    assert abs(beyond) < 2


def test_static_files_work_from_any_web_server_and_say_so_without_one(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    write_site(read_site(folder), tmp_path / "out")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path / "out")
    ) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/#set=1&task=2")
        page.wait_for_selector("#task h3")
        page.locator("#task .enlarge").first.click()
        page.wait_for_function(
            "() => document.querySelector('#large img')?.naturalWidth === 96"
        )  # there is no larger one
        server.shutdown()
    page.goto((tmp_path / "out" / "index.html").as_uri())
    assert page.locator("#needs-server").is_visible()
    page.close()


def test_sounds_are_played_and_stopped(context: BrowserContext, tmp_path: Path) -> None:
    seconds = np.arange(RATE * 2) / RATE
    table = []
    for c, label in enumerate(("ant", "bee", "cat")):
        for k, place in enumerate(("rain", "wind", "sea")):
            for i in range(4):
                path = f"{c}-{k}-{i}.flac"
                soundfile.write(tmp_path / path, 0.2 * np.sin(2 * np.pi * 400 * (c + k + 1) * seconds), RATE)
                table.append({"item": path, "path": path, "label": label, "split": "test", "context": place})
    catalog = Catalog(pa.Table.from_pylist(table), tmp_path)
    catalog.write(tmp_path / "catalog.parquet")
    for name, tasks in sample_context(catalog, way=3, shot=2, query=2, tasks=5).items():
        tasks.write(tmp_path / f"tasks-{name}.parquet")
        make_results(tasks, "tones", {"ncc": 0.5}).write(tmp_path / f"results-{name}.parquet")
    with served(tmp_path) as address:
        page = context.new_page()
        page.goto(f"{address}#task=1")
        first, second = (page.locator("#task button.play").nth(place) for place in (0, 5))
        first.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('.play[aria-pressed=true] img').naturalWidth === 96")
        page.wait_for_function("() => document.querySelector('.play[aria-pressed=true]') !== null")
        second.click()
        page.wait_for_timeout(100)
        assert (first.get_attribute("aria-pressed"), second.get_attribute("aria-pressed")) == ("false", "true")
        second.click()
        assert second.get_attribute("aria-pressed") == "false"
        assert page.locator("#task .context").first.inner_text() in ("rain", "wind", "sea")
        page.close()
