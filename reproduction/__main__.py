"""Derive the tables of docs/results/reproduction.md from results that are kept: `python -m reproduction`."""

from __future__ import annotations

from reproduction.document import DOCUMENT, derived
from reproduction.figures import write_figures

if __name__ == "__main__":
    DOCUMENT.write_text(derived(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    write_figures()
