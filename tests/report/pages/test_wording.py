from __future__ import annotations

import math
from pathlib import Path

import pytest

from shotproof.analysis.compare import compare
from shotproof.report.pages.wording import bounds, headline, metric, percent, typeset
from shotproof.stats.intervals import Interval
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


@pytest.mark.parametrize(("value", "text"), [(12.345, "12.3"), (-0.01, "0.0"), (-5.1, "-5.1"), (math.nan, "n/a")])
def test_percent(value: float, text: str) -> None:
    assert percent(value) == text


def test_bounds_that_are_refused_are_not_made_up() -> None:
    assert bounds(Interval(50.0, math.nan, math.nan, refused="one task")) == "[no interval]"
    assert bounds(Interval(50.0, -1.2, 60.0)) == "[-1.2, 60.0]"


def test_only_hyphens_before_numbers_become_minus_signs() -> None:
    assert typeset("5-way wAcc-R: -1.2 [-3.0, 0.6]") == "5-way wAcc-R: −1.2 [−3.0, 0.6]"


def test_headline_names_the_extremes_of_each_design(tmp_path: Path) -> None:
    comparison = compare(make_experiment(tmp_path)[0])
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


def test_headline_says_which_tasks_were_of_which_design(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, sampler, shot=shot, seed=shot), "pixels", {"ncc": 0.5, "ridge": 0.7}, shot)
        for shot, sampler in ((1, "random"), (2, "random"), (2, "fewstab"))
    ]
    assert headline(compare(results))[0] == (
        "2 classifiers (1 encoder × 2 methods) were tested on 3-way 1-shot tasks (20 random tasks) and 3-way 2-shot "
        "tasks (20 random tasks and 20 fewstab tasks)."
    )


def test_headline_of_many_designs_tells_the_largest(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [
        make_results(make_tasks(catalog, sampler, shot=shot, seed=shot), "pixels", {"ncc": 0.5, "ridge": 0.7}, shot)
        for shot in (1, 2)
        for sampler in ("random", "fewstab", "hard-ood")
    ]
    told = headline(compare(results))[1:]
    assert [sentence.startswith("On 3-way 2-shot tasks") for sentence in told] == [True, True]
    assert "on fewstab tasks than" in told[0]
    assert "on hard-ood tasks than" in told[1]


def test_headline_of_many_task_sets_leaves_out_no_data_set(tmp_path: Path) -> None:
    results = []
    for number, name in enumerate(("birds", "pets")):
        (tmp_path / name).mkdir()
        catalog = make_catalog(tmp_path / name, (f"{name} 1", f"{name} 2", f"{name} 3"), name=name)
        for sampler in ("random", "fewstab", "ood"):
            results.append(make_results(make_tasks(catalog, sampler, seed=number), "pixels", {"ncc": 0.5}))
    told = headline(compare(results))[1:]
    assert [sentence.split(",")[0] for sentence in told] == ["On birds"] * 2 + ["On pets"] * 2


def test_headline_says_what_a_gap_would_need(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    measured, missing = headline(compare([results]))
    assert measured.startswith(
        "1 classifier (1 encoder × 1 method) was tested on 3-way 1-shot tasks: 20 fewstab tasks."
    )
    assert missing.startswith("There is no gap to report")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("random", "wAcc-R"),
        ("fewstab", "wAcc-A"),
        ("fewstab [captions]", "wAcc-A [captions]"),
        ("hardest(rounds=2)", "wAcc-hardest(rounds=2)"),
        ("hard-ood", "wAcc-hard-ood"),
    ],
)
def test_metrics_carry_the_symbol_of_their_tasks(label: str, name: str) -> None:
    assert metric("wAcc", label) == name


def test_the_headline_names_data_sets_where_there_are_several(tmp_path: Path) -> None:
    results = []
    for number, name in enumerate(("birds", "pets")):
        (tmp_path / name).mkdir()
        catalog = make_catalog(tmp_path / name, (f"{name} 1", f"{name} 2", f"{name} 3"), name=name)
        for sampler in ("random", "fewstab"):
            results.append(make_results(make_tasks(catalog, sampler, seed=number), "pixels", {"ncc": 0.5}))
    measured, birds, pets = headline(compare(results))
    assert "tested on birds, 3-way 1-shot and pets, 3-way 1-shot tasks" in measured
    assert birds.startswith("On birds, 3-way 1-shot tasks, ncc on pixels loses")
    assert pets.startswith("On pets, 3-way 1-shot tasks, ncc on pixels loses")
