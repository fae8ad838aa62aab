from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.plot import save_figures
from shotproof.core.errors import InputError, UnknownName, WriteFailed
from shotproof.results.evaluated import evaluated_sets
from tests.drawn_results import draw_results, draw_tasks

SIGNATURES = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}


def compared(encoders: tuple[str, ...] = ("pixels",), seeds: tuple[int, ...] = (0,), biased: bool = True) -> Comparison:
    results = [
        draw_results(draw_tasks(sampler, seed=seed), {"ncc": accuracy, "a_$k$nn^": 0.4}, encoder, seed)
        for sampler, accuracy in {"random": 0.8, **({"fewstab": 0.5} if biased else {})}.items()
        for encoder in encoders
        for seed in seeds
    ]
    return compare_sets(evaluated_sets(results), ("sampler",))


def test_every_figure_that_applies_is_written_in_three_formats(tmp_path: Path) -> None:
    written = save_figures(compared(("pixels", "lite0"), (0, 1)), tmp_path / "new" / "figures")
    names = ["gaps", "scatter", "intervals", "pairs", "tasks", "seeds", "heat"]
    assert [path.name for path in written] == [f"{name}{suffix}" for name in names for suffix in SIGNATURES]
    for path in written:
        assert path.read_bytes().startswith(SIGNATURES[path.suffix])


def test_the_same_comparison_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (save_figures(compared(biased=False), tmp_path / name) for name in ("a", "b"))
    assert [path.name for path in first] == [
        f"{name}{suffix}" for name in ("intervals", "pairs", "tasks") for suffix in SIGNATURES
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert b"<dc:date>" not in first[0].read_bytes()


def test_gaps_are_bars_as_long_as_the_gap() -> None:
    comparison = compared()
    figure = comparison.plot()
    accuracy, worst = figure.axes
    (gap,) = comparison.gaps
    for axes, metric in ((accuracy, "acc"), (worst, "wacc")):
        assert axes.get_xlabel() == f"gap in {metric.replace('acc', 'Acc')}, points"
        assert [bar.get_width() for bar in axes.patches] == pytest.approx([row.means[metric] for row in gap.rows])  # type: ignore[index,attr-defined]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["ncc", "a_$k$nn^"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["random - fewstab"]


def test_a_scatter_has_the_reference_against_the_others() -> None:
    comparison = compared()
    (axes,) = comparison.plot("scatter").axes
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "o"]  # type: ignore[index]
    random, fewstab = comparison.groups
    expected = [(a.means["acc"], b.means["wacc"]) for a, b in zip(random.rows, fewstab.rows, strict=True)]
    np.testing.assert_allclose(points, expected)


def test_the_tasks_of_two_classifiers_are_points_of_an_area() -> None:
    comparison = compared(biased=False)
    (axes,) = comparison.plot("tasks").axes
    values = [comparison.groups[0].values[row.classifier]["acc"] for row in comparison.groups[0].rows]
    counted = Counter(zip(*(one.round(9).tolist() for one in values), strict=True))
    (points,) = axes.collections
    shown = {
        tuple(place): size / 6 for place, size in zip(points.get_offsets().tolist(), points.get_sizes(), strict=True)
    }  # type: ignore[attr-defined,union-attr]
    assert shown == pytest.approx(counted)
    assert axes.get_title().endswith(f"random, r = {np.corrcoef(*values)[0, 1]:.2f}")
    assert axes.get_xlabel() == "Acc of ncc on a task, percent"


def test_what_a_comparison_lacks_is_said() -> None:
    alone = compared(biased=False)
    assert alone.plot().axes[0].get_xlabel().startswith("Acc, percent, 95% intervals")
    for name, needs in (("gaps", "random or iid tasks"), ("seeds", "differ in their seed"), ("heat", "two encoders")):
        with pytest.raises(InputError, match=f"figure '{name}'.* needs .*{needs}"):
            alone.plot(name)
    with pytest.raises(UnknownName, match="unknown figure 'gap': did you mean 'gaps'"):
        alone.plot("gap")


def test_a_notebook_shows_a_figure_without_pyplot() -> None:
    loaded = "matplotlib.pyplot" in sys.modules
    figure = compared(biased=False).plot()
    assert figure._repr_png_().startswith(SIGNATURES[".png"])  # type: ignore[attr-defined]
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteFailed, match="cannot write figures into"):
        save_figures(compared(biased=False), tmp_path / "file")
