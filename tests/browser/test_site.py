"""The documentation as a reader has it: built strictly, notebooks run, every link followed, nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser

pytestmark = pytest.mark.site

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "docs" / "notebooks").glob("*.py"))


class Links(HTMLParser):
    """Where a page leads, what it loads, and the places in it that links name."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.leads.append(given["href"])
        elif tag in ("script", "img", "link", "source", "iframe"):
            self.loads += [given[name] for name in ("src", "href") if name in given and given.get("rel") != "canonical"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page.resolve(): Links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    lost = []
    for page, links in pages.items():
        for link in links.leads + links.loads:
            if re.match("[a-z]+:", link):
                continue
            path, _, place = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                lost.append(f"{page.relative_to(site.resolve())}: {link}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = {link for page in site.rglob("*.html") for link in Links(page).loads}
    assert {link for link in loaded if re.match("(https?:)?//", link)} == set()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_shows_what_came_out(site: Path, name: str) -> None:
    page = (site / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
    article = page[page.index("<article") : page.index("</article")]
    assert re.search("<table|<img", article)


def test_search_works_on_pages_that_are_opened_from_a_folder(site: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto((site / "how-to" / "fewstab.html").as_uri())
    page.click(".md-search__input")
    page.keyboard.type("depletion")
    page.locator(".md-search-result__item").first.wait_for()
    assert page.locator(".md-search-result__link[href*='statistics.html']").count() > 0
