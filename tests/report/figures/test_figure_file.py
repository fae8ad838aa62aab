from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from shotproof.report.figures.figure_file import write_svg
from shotproof.report.figures.svg import picture, text

SVG = "{http://www.w3.org/2000/svg}"


def test_a_file_has_the_figure_below_its_title_within_its_box(tmp_path: Path) -> None:
    write_svg(tmp_path / "a.svg", picture(360, 200, 'what "it" shows', [text(3, 199, "drawn")]), "A & B")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.tag == f"{SVG}svg"
    assert root.get("aria-label") == 'what "it" shows'
    assert [one.text for one in root.iter(f"{SVG}text")] == ["A & B", "drawn"]
    (moved,) = (one.get("transform") for one in root.iter(f"{SVG}g"))
    assert moved == "translate(0 20)"
    assert root.get("viewBox") == "-8 -8 376 236"  # 20 for the title, a margin of 8 around
