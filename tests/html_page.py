"""A written page, taken apart for tests."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """The elements of a page, as (tag, attributes, text directly inside)."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.ended = False
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes), []))
        self.ended = False

    def handle_endtag(self, tag: str) -> None:
        self.ended = True

    def handle_data(self, data: str) -> None:
        if self.elements and not self.ended:
            self.elements[-1][2].append(data)

    def find(self, tag: str, **attributes: str) -> list[str]:
        """The text of each such element up to the next tag."""
        wanted = attributes.items()
        return ["".join(text) for name, given, text in self.elements if name == tag and wanted <= given.items()]
