"""Links of the pages lead somewhere: to a file, to a generated page, and to a heading that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.site_pages import without_links_out

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / ".github").rglob("*.md")])
GENERATED = {DOCS / "reference/command-line.md", DOCS / "reference/python.md"} | {
    notebook.with_suffix(".md") for notebook in (DOCS / "notebooks").glob("*.py")
}
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|^ {4}.*?$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match("[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists() or target in GENERATED, link
        if anchor and target not in GENERATED:
            assert anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """The headings of a page as addresses spell them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_page_is_in_the_site() -> None:
    named = re.findall(r"- ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(page.relative_to(DOCS).as_posix() for page in {*DOCS.rglob("*.md"), *GENERATED})


def test_the_site_keeps_links_within_it_and_names_files_beside_it() -> None:
    written = (
        "![Picture](../figures/gap.svg) [Run](../how-to/run.md#next) [Rules](../../CONTRIBUTING.md) [Cite](../cite.md)"
    )
    kept = without_links_out(written, "ideas/gaps.md")
    assert kept == written.replace("[Rules](../../CONTRIBUTING.md)", "`Rules`")
