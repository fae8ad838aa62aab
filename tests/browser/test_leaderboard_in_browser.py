"""The leaderboard in a real browser, opened as a file and from a web server."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from shotproof.comparison.leaderboard import Leaderboard, make_leaderboard
from shotproof.comparison.leaderboard_rows import measure_card
from shotproof.pipeline.leaderboard_files import write_site
from tests.browser.regions import cut_regions, shaded_edges, unreachable_regions
from tests.drawn_cards import card_number, make_card, random_axis, stress_axis, with_estimates

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=document.title='owned'>"
MANY = 400


def a_board() -> Leaderboard:
    measured = []
    for number in range(MANY):
        accuracy, lost = 90 - 0.1 * number, 5 + (number * 37) % 50
        card = make_card(random_axis(5, accuracy), stress_axis("fewstab", lost))
        method = HOSTILE if number == 7 else f"method-{number:03}"
        card = replace(card, method=method, encoder=f"encoder-{number % 3}")
        measured += measure_card(card, f"{number}.json")
    heard = random_axis(5, 50.0)
    heard = replace(heard, tasks=replace(heard.tasks, digest="digest of sounds"))
    other = replace(make_card(heard), name="sounds", method="only here", encoder="logmel")
    return make_leaderboard([*measured, *measure_card(other, "other.json")])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaderboard") / "site"
    write_site(a_board(), "Birds and sounds", folder)
    return folder


@pytest.fixture(scope="module", params=["file", "server"])
def address(request: Any, site: Path) -> Iterator[str]:
    if request.param == "file":
        yield (site / "index.html").as_uri()
        return
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *given: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


def opened(browser: Browser, address: str, **given: Any) -> Page:
    page = browser.new_page(**given)
    page.problems = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.problems.append(str(error)))  # type: ignore[attr-defined]
    page.on("console", lambda said: page.problems.append(said.text) if said.type == "error" else None)  # type: ignore[attr-defined]
    page.goto(address)
    page.wait_for_selector("#rows a")
    return page


def names(page: Page) -> list[str]:
    return page.locator("#rows tr:not(.space) a").all_inner_texts()


def test_it_is_sorted_searched_and_linked(browser: Browser, address: str) -> None:
    page = opened(browser, address)
    assert names(page)[:2] == ["method-000", "method-001"]
    assert page.locator("#rows tr:not(.space)").count() < 60  # of 400: those in sight
    assert page.locator("#rows .rank").first.inner_text().startswith("1–")
    page.get_by_role("button", name="skill lost").click()
    first = names(page)[0]
    assert page.locator("th[aria-sort=ascending]").inner_text() == "skill lost"
    page.get_by_role("button", name="skill lost").press("Enter")  # the focus stays on the button
    page.wait_for_function("first => document.querySelector('#rows a').textContent !== first", arg=first)
    assert page.locator("th[aria-sort=descending]").inner_text() == "skill lost"
    page.fill("#search", "METHOD-12 encoder-1")
    page.wait_for_function("document.getElementById('summary').textContent.startsWith('3 classifiers')")
    assert sorted(names(page)) == ["method-121", "method-124", "method-127"]
    # The address is the view.
    again = opened(browser, page.url)
    assert sorted(names(again)) == ["method-121", "method-124", "method-127"]
    again.get_by_role("link", name="method-121").first.click()
    assert again.locator("h1").inner_text() == "method-121 on encoder-1"
    assert page.problems + again.problems == []  # type: ignore[attr-defined]
    page.close()
    again.close()


def test_hostile_names_stay_text_everywhere(browser: Browser, site: Path) -> None:
    page = opened(browser, (site / "index.html").as_uri())
    page.fill("#search", "onerror")
    page.wait_for_function("document.getElementById('summary').textContent.startsWith('1 classifier')")
    page.wait_for_selector("#front a")
    assert names(page) == [HOSTILE]
    page.locator("#rows a").click()
    assert page.locator("h1").inner_text() == f"{HOSTILE} on encoder-1"
    assert page.title() == f"{HOSTILE} on encoder-1"
    assert page.problems == []  # type: ignore[attr-defined]
    page.close()


def test_all_rows_are_reached_by_scrolling_and_other_data_by_choosing(browser: Browser, site: Path) -> None:
    page = opened(browser, (site / "index.html").as_uri(), viewport={"width": 400, "height": 800}, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    page.evaluate("document.getElementById('table').scrollTop = 1e9")
    page.wait_for_selector("text=method-399")
    page.select_option("#data", "sounds")
    page.wait_for_selector("text=only here")
    assert names(page) == ["only here"]
    assert page.problems == []  # type: ignore[attr-defined]
    page.close()


def test_the_front_is_by_means_and_told_apart_from_what_intervals_leave_open(browser: Browser, site: Path) -> None:
    page = opened(browser, (site / "index.html").as_uri())
    page.wait_for_selector("#front a")
    board = a_board()
    x = next(
        column for column in board.columns if (column.axis, column.quantity, column.metric) == (0, "accuracy", "acc")
    )
    y = next(
        column for column in board.columns if (column.axis, column.quantity, column.metric) == (1, "skill_lost", "acc")
    )
    both = [
        (accuracy.mean, -lost.mean, entry.classifier.method)
        for accuracy, lost, entry in zip(x.intervals, y.intervals, board.entries, strict=True)
        if accuracy is not None and lost is not None
    ]
    on_front = [name for a, b, name in both if not any((c >= a and d >= b) and (c > a or d > b) for c, d, _ in both)]
    assert sorted(page.locator("#front a").all_inner_texts()) == sorted(on_front)
    beaten = board.beaten[board.columns.index(x), board.columns.index(y)]
    maybe = len(both) - int(beaten.sum()) - len(on_front)
    summary = page.inner_text("#front-summary")
    assert summary.startswith(f"{len(on_front)} of ")
    assert f"{maybe} others may be on it" in summary
    page.locator("#correlations button").first.click()
    page.wait_for_function("location.hash.includes('x=')")
    assert page.problems == []  # type: ignore[attr-defined]
    page.close()


@pytest.fixture(scope="module")
def many_axes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A leaderboard with more axes than a screen has room for, and with one that had next to nothing to lose."""
    measured = []
    for number, lost in enumerate((5.0, 20.0, 40.0, 600.0)):
        share = {"acc": card_number(lost, 10.0), "wacc": card_number(lost, 10.0)}
        stresses = (with_estimates(stress_axis(name), skill_lost=share) for name in ("fewstab", "hardest", "hard-ood"))
        card = make_card(*(random_axis(shot, 90 - 10.0 * number) for shot in (1, 5, 10)), *stresses)
        encoder = "an-encoder-with-a-name-that-is-longer-than-its-column"
        measured += measure_card(replace(card, method=f"method-{number}", encoder=encoder), f"{number}.json")
    folder = tmp_path_factory.mktemp("axes") / "site"
    write_site(make_leaderboard(measured), "Axes", folder)
    return (folder / "index.html").as_uri()


# Where the text of an element begins and ends, which is not where its box does.
TEXT = """(element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  const { left, right } = range.getBoundingClientRect();
  return [left, right];
}"""


@pytest.mark.parametrize("width", [1600, 1300, 400])
def test_a_group_head_stands_above_its_columns(browser: Browser, many_axes: str, width: int) -> None:
    page = opened(browser, many_axes, viewport={"width": width, "height": 900})
    columns = page.locator("#columns th").all()
    cells = page.locator("#rows tr:not(.space)").first.locator("td.number:not(.rank)").all()
    place = 0
    for head in page.locator("#axes th[colspan]").all():
        spanned = int(head.get_attribute("colspan") or 0)
        boxes = [one.bounding_box() for one in (head, columns[place], columns[place + spanned - 1])]
        own, first, last = ((box["x"], box["x"] + box["width"]) for box in boxes if box is not None)
        assert own == pytest.approx((first[0], last[1]), abs=1)
        left, right = head.evaluate(TEXT)
        if spanned == 1:
            ends = [right, columns[place].locator("button").evaluate(TEXT)[1], cells[place].evaluate(TEXT)[1]]
            assert ends == pytest.approx([right] * 3, abs=1)
        else:
            assert (left + right) / 2 == pytest.approx(sum(own) / 2, abs=1)
        place += spanned
    assert place == len(columns) == len(cells)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_table_shows_on_a_phone_that_it_scrolls(browser: Browser, many_axes: str, scheme: Any) -> None:
    page = opened(browser, many_axes, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    assert "Classifiers" in cut_regions(page)
    assert unreachable_regions(page) == []
    table = page.locator("#table")
    assert shaded_edges(page, table)[1] > 0.5  # heads are before it
    name = page.locator("#rows th").first.bounding_box()
    number = page.locator("#rows td.number:not(.rank)").first.bounding_box()
    assert name is not None
    assert number is not None
    assert number["x"] + number["width"] < 380  # beside the names there is room for a number
    table.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    assert shaded_edges(page, table)[1] < 0.5
    page.close()


def test_a_mark_beyond_the_frame_of_skill_lost_leaves_room_for_the_others(browser: Browser, many_axes: str) -> None:
    page = opened(browser, many_axes)
    page.wait_for_selector("#scatter .dots")
    ticks = [
        text.replace("\u2212", "-") for text in page.locator("#scatter .tick[text-anchor=end]").all_text_contents()
    ]
    assert max(map(float, ticks)) <= 150
    page.close()


def test_all_rows_are_printed(browser: Browser, site: Path) -> None:
    page = opened(browser, (site / "index.html").as_uri())
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.wait_for_timeout(100)  # the box becomes higher, which draws rows anew
    assert len(names(page)) == MANY
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function("document.querySelectorAll('#rows tr:not(.space)').length < 60")
    page.close()
