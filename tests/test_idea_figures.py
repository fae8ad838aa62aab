"""The figures of the first page and of the ideas are those that their script draws."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tools.idea_figures import FOLDER, write_figures

_TILE = re.compile(r"data:image/png;base64,([^\"]+)")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in write_figures(tmp_path_factory.mktemp("figures"))}


@pytest.mark.parametrize("name", ["card.svg", "card-phone.svg", "shortcut.svg", "gap.svg", "intervals.svg"])
def test_a_figure_has_not_drifted(name: str, drawn: dict[str, str]) -> None:
    kept = (FOLDER / name).read_text(encoding="utf-8")
    assert _TILE.sub("", kept) == _TILE.sub("", drawn[name]), "python -m tools.idea_figures draws it anew"
    for ours, theirs in zip(_TILE.findall(kept), _TILE.findall(drawn[name]), strict=True):
        # Versions of Pillow compress and reduce colors in their own ways.
        assert np.abs(_pixels(ours) - _pixels(theirs)).mean() < 3


def _pixels(tile: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(tile))).convert("RGB"), dtype=float)


def test_every_figure_is_shown_on_a_page() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in Path(FOLDER.parent).rglob("*.md"))
    assert [path.name for path in FOLDER.glob("*.svg") if f"figures/{path.name}" not in pages] == []
