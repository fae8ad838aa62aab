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

from shotproof.pipeline.leaderboard import write_site
from shotproof.stats.leaderboard.leaderboard import Leaderboard, make_leaderboard
from shotproof.stats.leaderboard.measured import measured_of_card
from tests.drawn_cards import make_card, random_axis, stress_axis

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
        measured += measured_of_card(card, f"{number}.json")
    other = replace(make_card(random_axis(5, 50.0)), name="sounds", method="only here", encoder="logmel")
    return make_leaderboard([*measured, *measured_of_card(other, "other.json")])


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
    x = next(one for one in board.columns if (one.axis, one.quantity, one.metric) == (0, "accuracy", "acc"))
    y = next(one for one in board.columns if (one.axis, one.quantity, one.metric) == (1, "skill_lost", "acc"))
    both = [
        (one.mean, -other.mean, entry.classifier.method)
        for one, other, entry in zip(x.intervals, y.intervals, board.entries, strict=True)
        if one is not None and other is not None
    ]
    on_front = [name for a, b, name in both if not any((c >= a and d >= b) and (c > a or d > b) for c, d, _ in both)]
    assert sorted(page.locator("#front a").all_inner_texts()) == sorted(on_front)
    beaten = board.beaten[board.columns.index(x), board.columns.index(y)]
    maybe = len(both) - int(beaten.sum()) - len(on_front)
    assert f"{len(on_front)} on the front by their means; {maybe} others may be on it" in page.inner_text(
        "#front-summary"
    )
    page.locator("#correlations button").first.click()
    page.wait_for_function("location.hash.includes('x=')")
    assert page.problems == []  # type: ignore[attr-defined]
    page.close()
