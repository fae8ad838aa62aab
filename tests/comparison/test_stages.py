from __future__ import annotations

from pathlib import Path

import pytest

import shotproof as sp
from shotproof.comparison.comparison import Comparison
from shotproof.comparison.stages import stage_of
from shotproof.core.errors import UnknownName
from shotproof.report.figures.loss_curves import stage_panels
from tests.report_files import make_catalog, make_results, make_tasks

ENCODERS = ("lite0", "lite0(stage=2)", "lite0(stage=10)", "hf:a/b(pooling='cls', stage=1)")
LOSSES = {"lite0": 0.1, "lite0(stage=2)": 0.3, "lite0(stage=10)": 0.5, "hf:a/b(pooling='cls', stage=1)": 0.2}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two methods, two numbers of shots; `ridge` loses half as much as `ncc`."""
    catalog = make_catalog(tmp_path_factory.mktemp("images"))
    results = []
    for shot in (1, 2):
        for seed, sampler in enumerate(("random", "fewstab")):
            tasks = make_tasks(catalog, sampler, shot=shot, seed=10 * shot + seed, tasks=200)
            for encoder, loss in LOSSES.items():
                lost = loss * seed
                results.append(make_results(tasks, encoder, {"ncc": 0.9 - lost, "ridge": 0.9 - lost / 2}, seed))
    return sp.compare(results, intervals="sampler", placebo=False)


def test_one_curve_per_method_and_number_of_shots(comparison: Comparison) -> None:
    curves = sp.analysis.stage_curves(comparison)
    assert [(curve.encoder, curve.method, curve.design.shot, curve.label) for curve in curves] == [
        ("lite0", method, shot, "fewstab") for shot in (1, 2) for method in ("ncc", "ridge")
    ]
    for one in curves:
        assert list(one.gaps) == [2, 10]
        for stage, gap in one.gaps.items():
            expected = 100 * LOSSES[f"lite0(stage={stage})"] / (1 if one.method == "ncc" else 2)
            assert gap.mean == pytest.approx(expected, abs=4)
    worst = sp.analysis.stage_curves(comparison, "wacc")
    assert worst[0].gaps[2].mean != curves[0].gaps[2].mean
    with pytest.raises(UnknownName, match=r"metric 'wac'.*did you mean 'wacc'"):
        sp.analysis.stage_curves(comparison, "wac")


def test_the_page_and_the_figure_draw_them(comparison: Comparison, tmp_path: Path) -> None:
    panels = stage_panels(comparison)
    assert [panel.name for panel in panels] == [f"lite0: random - fewstab, 3-way {shot}-shot" for shot in (1, 2)]
    assert [name for _, name in panels[0].keys] == ["ncc", "ridge"]
    assert panels[0].figure.count('class="mark') == 4
    axes = comparison.plot("stages").axes[:2]
    assert [list(axis.lines[0].get_xdata()) for axis in axes] == [[2, 10], [2, 10]]


@pytest.mark.parametrize(
    ("encoder", "expected"),
    [
        ("lite0", None),
        ("my own features", None),
        ("lite0(stage=3) > center > normalize", ("lite0 > center > normalize", 3)),
        ("hf:a/b(pooling='cls', stage=1)", ("hf:a/b(pooling='cls')", 1)),
        ("model:some.model(stage=4)", ("model:some.model", 4)),
    ],
)
def test_the_stage_in_the_name_of_an_encoder(encoder: str, expected: tuple[str, int] | None) -> None:
    assert stage_of(encoder) == expected
