"""The Python of the pages that newcomers begin with runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.option_tables import DOCS

PAGES = sorted((DOCS / "start").glob("*.md"))
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.stem
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec("\n".join(_PYTHON.findall(page.read_text(encoding="utf-8"))), {"__name__": page.stem})
