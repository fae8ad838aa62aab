from __future__ import annotations

import math
from pathlib import Path

import pytest

from shotproof.report.comparison import compare_results
from shotproof.report.wording import bounds, headline, percent, typeset
from shotproof.stats.intervals import Interval
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


@pytest.mark.parametrize(("share", "text"), [(0.12345, "12.3"), (-0.0001, "0.0"), (-0.051, "-5.1"), (math.nan, "n/a")])
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text


def test_bounds_that_are_refused_are_not_made_up() -> None:
    assert bounds(Interval(0.5, math.nan, math.nan, refused="one task")) == "[no interval]"
    assert bounds(Interval(0.5, -0.012, 0.6)) == "[-1.2, 60.0]"


def test_only_hyphens_before_numbers_become_minus_signs() -> None:
    assert typeset("5-way wAcc-R: -1.2 [-3.0, 0.6]") == "5-way wAcc-R: −1.2 [−3.0, 0.6]"


def test_headline_names_the_extremes_of_each_design(tmp_path: Path) -> None:
    comparison = compare_results(make_experiment(tmp_path)[0])
    measured, one_shot, two_shots = headline(comparison)
    assert measured == (
        "4 classifiers (2 encoders × 2 methods) were tested on 3-way 1-shot and 3-way 2-shot tasks: "
        "30 random tasks and 30 fewstab tasks each."
    )
    for sentence, shot in ((one_shot, 1), (two_shots, 2)):
        rows = sorted((r for r in comparison.rows if r.design.shot == shot), key=lambda r: r.gap.mean if r.gap else 0)
        for row in (rows[0], rows[-1]):
            assert row.gap is not None
            assert f"{row.method} on {row.encoder} leans on" in sentence
            assert f"{percent(row.gap.mean)} points {bounds(row.gap)}" in sentence


def test_headline_of_many_designs_tells_the_largest(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, sampler, shot=shot, seed=shot), "pixels", {"ncc": 0.5, "ridge": 0.7}, shot)
        for shot in (1, 2)
        for sampler in ("random", "fewstab", "hard_ood")
    ]
    told = headline(compare_results(results))[1:]
    assert [sentence.startswith("On 3-way 2-shot tasks") for sentence in told] == [True, True]
    assert "on fewstab tasks than" in told[0]
    assert "on hard_ood tasks than" in told[1]


def test_headline_says_what_a_gap_would_need(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    measured, missing = headline(compare_results([results]))
    assert measured.startswith(
        "1 classifier (1 encoder × 1 method) was tested on 3-way 1-shot tasks: 20 fewstab tasks."
    )
    assert missing.startswith("There is no gap to report")
