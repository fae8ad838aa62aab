from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from shotproof.analysis.context_effect import FeatureChange, feature_change
from shotproof.core.errors import InputError
from shotproof.features.features import Features
from shotproof.report.figures import feature_change_figure as module
from shotproof.report.figures.feature_change_figure import COLUMNS, geometry_figure, table_rows, write_geometry
from tests.analysis.test_context_effect import drawn, is_mixed
from tests.html_page import Page


def shrunk(recordings: int = 6) -> FeatureChange:
    catalog, array = drawn(recordings)
    array[is_mixed(catalog)] *= 0.5
    return feature_change(Features.from_array(catalog.items, array), catalog, "clean")


def places(svg: str, scale: str) -> list[tuple[float, float]]:
    found = re.findall(rf"translate\(([-\d.]+) ([-\d.]+)\) scale\({scale}\)", svg)
    return [(float(x), float(y)) for x, y in found]


def test_every_item_is_drawn_and_the_means_lie_amid_their_own() -> None:
    found = shrunk()
    svg = str(geometry_figure(found))
    points, means = np.array(places(svg, "0.55")), np.array(places(svg, "2.2"))
    assert len(points) == 18 + 36
    np.testing.assert_allclose(means, [points[:18].mean(axis=0), points[18:].mean(axis=0)], atol=0.2)
    assert means[1, 0] < means[0, 0]  # shorter: further left
    assert means[1, 1] == pytest.approx(means[0, 1], abs=0.2)  # and not turned


def test_of_many_items_some_are_drawn_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHOWN", 10)
    svg = str(geometry_figure(shrunk()))
    assert len(places(svg, "0.55")) == 20
    assert "clean, 10 of 18" in svg
    assert "mixed, 10 of 36" in svg


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_the_figure_stands_alone(tmp_path: Path, suffix: str) -> None:
    found, path = shrunk(), tmp_path / f"geometry{suffix}"
    write_geometry(path, found, "A <title>")
    text = path.read_text(encoding="utf-8")
    assert ".figure .mark" in text
    if suffix == ".svg":
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    else:
        assert "<h1>A &lt;title&gt;</h1>" in text
        assert text.count("<tr>") == 1 + 3 + 1
        assert json.loads(Page(path).find("script", id="geometry")[0]) == found.to_json()


def test_a_row_has_a_cell_for_each_column() -> None:
    rows = table_rows([shrunk().overall])
    assert [len(row) for row in rows] == [len(COLUMNS)]
    assert rows[0][COLUMNS.index("ratio")] == "0.5"


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"name that ends in \.svg or \.html"):
        write_geometry(tmp_path / "geometry.pdf", shrunk(), "title")
