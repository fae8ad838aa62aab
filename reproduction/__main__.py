"""Derive the tables of docs/results/reproduction*.md from kept results: `python -m reproduction`."""

from __future__ import annotations

from reproduction.document import all_pages, fill_sections
from reproduction.figures import write_figures

if __name__ == "__main__":
    for page in all_pages():
        page.write_text(fill_sections(page.read_text(encoding="utf-8")), encoding="utf-8")
    write_figures()
