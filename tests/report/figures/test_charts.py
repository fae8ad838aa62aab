from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from shotproof.planning.task_plan import ScoreMoments, plan
from shotproof.report.figures.charts import (
    Bar,
    Point,
    attribute_dots,
    gap_bars,
    gap_domain,
    interval_rows,
    plan_figure,
    scatter,
)
from shotproof.stats.costs import AttributeCost
from shotproof.stats.intervals import Estimate, Interval

NASTY = '"><img src=x onerror=alert(1)> <script>alert(1)</script>'


def around(mean: float, half: float = 2.0) -> Interval:
    return Interval(mean, mean - half, mean + half)


def elements(figure: str, tag: str, class_: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(figure)
    return [found for found in root.iter(tag) if class_ in found.get("class", "").split()]


def place(mark: ElementTree.Element) -> tuple[float, float]:
    x, y = mark.get("transform", "").removeprefix("translate(").removesuffix(")").split()
    return float(x), float(y)


def test_scatter_places_points_in_proportion() -> None:
    points = [Point("m", f"m{i}", i, around(x), around(y)) for i, (x, y) in enumerate([(50, 20), (60, 40), (80, 30)])]
    marks = [place(mark) for mark in elements(scatter(points, "Acc-R (%)", "wAcc-A (%)", "d"), "path", "mark")]
    (x0, y0), (x1, y1), (x2, y2) = marks
    assert (x2 - x0) / (x1 - x0) == pytest.approx(3, rel=0.01)
    assert (y2 - y0) / (y1 - y0) == pytest.approx(0.5, rel=0.01)
    assert y1 < y0  # higher is further up


def test_bars_are_as_long_as_gaps_and_start_at_zero() -> None:
    gaps = {"ncc": 30.0, "ridge": 15.0, "knn": -5.0}
    groups = [(name, [Bar(0, "5-way 5-shot", around(gap))]) for name, gap in gaps.items()]
    figure = gap_bars(groups, gap_domain([around(gap) for gap in gaps.values()]), "gap", "d")
    ncc, ridge, knn = ([float(bar.get(name, "")) for name in ("x", "width")] for bar in elements(figure, "rect", "bar"))
    assert ncc[1] / ridge[1] == pytest.approx(2, rel=0.01)
    assert ncc[1] / knn[1] == pytest.approx(6, rel=0.02)
    assert knn[0] + knn[1] == pytest.approx(ncc[0], abs=0.2)
    assert [value.text for value in elements(figure, "text", "value")] == ["30.0", "15.0", "−5.0"]
    whisker = elements(figure, "line", "whisker")[1]
    assert float(whisker.get("x1", "")) < ridge[0] + ridge[1] < float(whisker.get("x2", ""))


def test_costs_are_drawn_against_nothing_lost() -> None:
    costs = [AttributeCost((word,), around(lost), 12, 3, "jay", "jay") for word, lost in (("water", 20), ("sand", 10))]
    figure = attribute_dots(costs, "d")
    (reference,) = elements(figure, "line", "reference")
    (water, _), (sand, _) = (place(mark) for mark in elements(figure, "path", "mark"))
    nothing = float(reference.get("x1", ""))
    assert (water - nothing) / (sand - nothing) == pytest.approx(2, rel=0.01)


def test_a_single_task_is_drawn_without_whiskers_of_its_own() -> None:
    lone = Interval(40.0, math.nan, math.nan, refused="one task")
    figure = scatter([Point("ncc", "ncc", 0, lone, lone)], "x", "y", "d")
    assert "nan" not in figure
    assert "nan" not in gap_bars([("ncc", [Bar(0, "s", lone)])], gap_domain([lone]), "gap", "d")


def test_names_from_files_are_text_only() -> None:
    gap = around(10.0)
    figures = [
        scatter([Point(NASTY, NASTY, 0, gap, gap)], "x", "y", NASTY),
        gap_bars([(NASTY, [Bar(0, NASTY, gap)])], gap_domain([gap]), "gap", NASTY),
        attribute_dots([AttributeCost((NASTY,), gap, 12, 1, NASTY, NASTY)], NASTY),
    ]
    for figure in figures:
        root = ElementTree.fromstring(figure)
        assert root.get("aria-label") == NASTY
        assert {found.tag for found in root.iter()} <= {"svg", "line", "text", "path", "rect", "title"}
        assert any(NASTY in (found.text or "") for found in root.iter("title"))


def test_intervals_are_drawn_with_their_names_and_refused_ones_are_not() -> None:
    refused = Estimate(50, None, "too small").interval("classes")
    given = [Interval(50, 40, 60, "sampler"), Interval(50, 30, 70, "images"), refused]
    figure = interval_rows([("ncc", given), ("knn", given[2:])], "Acc (%)", "d")
    sampler, images = elements(figure, "line", "whisker")
    widths = [float(one.get("x2", "")) - float(one.get("x1", "")) for one in (sampler, images)]
    assert widths[1] / widths[0] == pytest.approx(2, rel=0.01)
    words = [one.text for one in ElementTree.fromstring(figure).iter("text")]
    assert "sampler" in words
    assert "images" in words
    assert not {"classes", "knn"} & set(words)


def test_the_plan_s_lowest_point_is_marked_as_the_best() -> None:
    made = plan(ScoreMoments(0.85, 0.74, 0.578), shot=5, way=5, classes=50, items=59, queries=range(1, 31))
    figure = plan_figure(made, 15, "d")
    (curve,) = elements(figure, "path", "curve")
    heights = [float(point.split()[1]) for point in curve.get("d", "").removeprefix("M").split("L")]
    best, own = (place(mark) for mark in elements(figure, "path", "mark"))
    assert best[1] == pytest.approx(max(heights), abs=0.1)  # lower is further down
    assert own[1] == pytest.approx(heights[14], abs=0.1)
    said = [text.text or "" for text in elements(figure, "text", "value")]
    half = next(point.half_width for point in made.curve if point.query == made.query)
    assert said[0] == f"best: {made.query} (±{half:.1f})"  # both in points
    assert said[1].startswith("these results: 15 (±")
