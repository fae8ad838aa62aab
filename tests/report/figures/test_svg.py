from __future__ import annotations

import itertools
import math
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from shotproof.report.figures.svg import Box, Scale, element, picture, place_labels, shorten, text, write_svg

FRAME = Box(0, 0, 300, 300)
inside = st.floats(10, 290)
NASTY = "<script>alert(1)</script>\"'&"


def test_text_and_attributes_are_escaped() -> None:
    parsed = ElementTree.fromstring(element("text", NASTY, data_name=NASTY, x=1.25))
    assert (parsed.text, parsed.attrib) == (NASTY, {"data-name": NASTY, "x": "1.2"})
    nested = ElementTree.fromstring(element("g", text(0, 0, NASTY)))
    assert [child.text for child in nested] == [NASTY]


@settings(max_examples=40, deadline=None)
@given(points=st.lists(st.tuples(inside, inside), max_size=25), length=st.integers(1, 14))
def test_labels_overlap_nothing_and_stay_in_the_frame(points: list[tuple[float, float]], length: int) -> None:
    placed = [box for box in place_labels(points, ["m" * length] * len(points), FRAME) if box]
    for index, box in enumerate(placed):
        assert box.is_inside(FRAME)
        assert not any(box.overlaps(other) for other in placed[index + 1 :])
        assert not any(box.left < x < box.right and box.top < y < box.bottom for x, y in points)


def test_points_apart_are_all_labeled() -> None:
    points = [(40.0 + 70 * i, 40.0 + 60 * j) for i in range(4) for j in range(4)]
    assert all(place_labels(points, ["logistic"] * 16, FRAME))


@given(low=st.floats(-1, 1), width=st.floats(0.001, 2))
def test_ticks_are_even_and_within_the_scale(low: float, width: float) -> None:
    scale = Scale(low, low + width, 0, 100)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-6 <= tick <= low + width + 1e-6 for tick in ticks)
    steps = [b - a for a, b in itertools.pairwise(ticks)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-6, abs_tol=1e-9) for step in steps)


def test_a_scale_of_one_value_still_has_a_width() -> None:
    scale = Scale.around([0.5], 10, 20)
    assert scale(0.5) == 15


def test_long_names_lose_their_middle() -> None:
    assert shorten("sklearn.svm.SVC(C=10)", 12) == "sklearn.…10)"
    assert len(shorten("x" * 50, 12)) == 12
    assert shorten("short", 12) == "short"


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
