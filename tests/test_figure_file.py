from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from shotproof.report.figure_file import write_svg
from shotproof.report.svg import marker, picture, text

SVG = "{http://www.w3.org/2000/svg}"


def test_a_file_has_the_figure_its_title_and_all_names_within_its_box(tmp_path: Path) -> None:
    names = [f"a method <{n}> with a long name" for n in range(7)]
    keys = [(marker(5, 5, series), name) for series, name in enumerate(names)]
    write_svg(tmp_path / "a.svg", picture(360, 200, 'what "it" shows', [text(3, 199, "drawn")]), "A & B", keys)
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.tag == f"{SVG}svg"
    assert root.get("aria-label") == 'what "it" shows'
    left, top, width, height = map(float, root.get("viewBox", "").split())
    title, *others = root.iter(f"{SVG}text")
    assert title.text == "A & B"
    assert [one.text for one in others] == ["drawn", *names]
    places = [(float(one.get("x", "")), float(one.get("y", ""))) for one in others[1:]]
    assert len(set(places)) == len(names)
    assert all(x < left + width and 220 < y < top + height for x, y in places)
    # Every mark is drawn left of its name, in the same row.
    groups = [one.get("transform", "") for one in root.iter(f"{SVG}g")][1:]
    moved = [re.findall(r"[\d.]+", transform) for transform in groups]
    assert [(float(x) + 13, float(y) + 8.5) for x, y in moved] == places
