from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shotproof.errors import InputError, Mismatch
from shotproof.evaluation.results import Results
from shotproof.report.comparison import Comparison, compare_results
from shotproof.tasks.taskset import TaskSet
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def by_hand(results: Results, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and worst class accuracy of each task, from the rows."""
    shares: dict[int, list[float]] = {}
    for row in results.table.to_pylist():
        if row["method"] == method:
            shares.setdefault(row["task"], []).append(row["n_correct"] / row["n_query"])
    return np.array([np.mean(s) for s in shares.values()]), np.array([min(s) for s in shares.values()])


def test_numbers_are_those_computed_by_hand(tmp_path: Path) -> None:
    results, _, _ = make_experiment(tmp_path)
    comparison = compare_results(results)
    assert len(comparison.rows) == 2 * 2 * 2  # encoders, methods, designs
    row = comparison.rows[-1]
    assert (row.encoder, row.method, row.design.shot) == ("other encoder", "ridge", 2)
    random, biased = (by_hand(given, "ridge") for given in (results[5], results[7]))
    assert row.reference is not None
    assert row.biased is not None
    assert row.gap is not None
    for measured, (accuracy, worst) in ((row.reference, random), (row.biased, biased)):
        assert measured.tasks == 30
        for interval, values in ((measured.accuracy, accuracy), (measured.worst, worst)):
            expected = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
            assert (interval.low, interval.high) == pytest.approx(expected)
    # Welch's interval by its formula.
    a, b = random[1], biased[1]
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    half = stats.t.ppf(0.975, freedom) * np.sqrt(va + vb)
    assert row.gap.mean == pytest.approx(a.mean() - b.mean())
    assert row.gap.half_width == pytest.approx(half)


def test_agreement_is_over_all_classifiers_of_a_design(tmp_path: Path) -> None:
    results, _, _ = make_experiment(tmp_path)
    agreement = compare_results(results).agreements[0]
    pairs = [(r, b, m) for r, b in ((results[0], results[2]), (results[1], results[3])) for m in ("ncc", "ridge")]
    accuracy = [by_hand(r, m)[0].mean() for r, _, m in pairs]
    random = [by_hand(r, m)[1].mean() for r, _, m in pairs]
    biased = [by_hand(b, m)[1].mean() for _, b, m in pairs]

    def spearman(x: list[float], y: list[float]) -> float:
        return float(np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1])

    assert (agreement.design.shot, agreement.sampler, agreement.classifiers) == (1, "fewstab", 4)
    assert agreement.accuracy_with_worst == pytest.approx(spearman(accuracy, biased))
    assert agreement.worst_with_worst == pytest.approx(spearman(random, biased))
    assert agreement.average_drop == pytest.approx(np.mean(random) - np.mean(biased))


def test_one_side_alone_has_no_gap(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    fewstab = make_results(make_tasks(catalog), "pixels", {"ncc": 0.5})
    random = make_results(make_tasks(catalog, "random", shot=2), "pixels", {"ncc": 0.5})
    first, second = compare_results([random, fewstab]).rows  # of different designs
    assert (first.design.shot, first.reference, first.gap) == (1, None, None)
    assert (second.design.shot, second.biased, second.gap) == (2, None, None)


def test_any_other_sampler_is_compared_with_random(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    samplers = ("random", "fewstab", "hard_ood")
    results = [make_results(make_tasks(catalog, s, seed=i), "pixels", {"ncc": 0.6}, i) for i, s in enumerate(samplers)]
    comparison = compare_results(results)
    assert comparison.biased_samplers == ["fewstab", "hard_ood"]
    assert [row.reference for row in comparison.rows] == [comparison.rows[0].reference] * 2
    assert all(row.gap for row in comparison.rows)


def test_different_task_sets_of_one_design_are_refused(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    sets = [make_tasks(catalog, seed=seed) for seed in (1, 2)]
    for encoders in (("pixels", "pixels"), ("pixels", "other")):
        results = [make_results(tasks, name, {"ncc": 0.5}) for tasks, name in zip(sets, encoders, strict=True)]
        with pytest.raises(Mismatch, match=f"{sets[0].digest}.*{sets[1].digest}"):
            compare_results(results)


def test_the_same_results_twice_count_once_but_other_counts_are_refused(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    first, other = (make_results(tasks, "pixels", {"ncc": 0.5}, seed) for seed in (1, 2))
    assert compare_results([first, first]) == compare_results([first])
    with pytest.raises(Mismatch, match="'ncc' on encoder 'pixels' was given twice"):
        compare_results([first, other])


def test_no_results_are_refused() -> None:
    with pytest.raises(InputError, match="at least one results file"):
        compare_results([])


def test_results_without_metadata_are_of_an_unknown_sampler(tmp_path: Path) -> None:
    results = make_results(make_tasks(make_catalog(tmp_path)), "pixels", {"ncc": 0.5})
    (row,) = compare_results([Results(results.table)]).rows
    assert row.biased is not None
    assert (row.encoder, row.biased.sampler, row.gap) == ("unknown", "unknown", None)
    assert (row.design.way, row.design.shot, row.design.query) == (3, None, 4)  # way and query from the counts


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["made_by", "from", "digest", "sampler", "way", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(meta=st.dictionaries(st.sampled_from(["tasks", "features", "made_by"]), json_values))
def test_no_metadata_is_too_strange(meta: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    table = make_results(make_tasks(make_catalog(tmp_path_factory.mktemp("c"))), "pixels", {"ncc": 0.5}).table
    assert len(compare_results([Results(table, meta)]).rows) == 1


def test_a_single_task_has_no_interval_and_gives_plain_json(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    results = [make_results(make_tasks(catalog, s, tasks=1), "pixels", {"ncc": 0.5}) for s in ("random", "fewstab")]
    written = json.loads(json.dumps(compare_results(results).to_json(), allow_nan=False))
    assert written["rows"][0]["gap"]["low"] is None
    assert written["rows"][0]["gap"]["covers"] == "sampler"
    assert written["agreements"][0]["worst_with_worst"] is None


def test_designs_are_named_by_what_tells_them_apart(tmp_path: Path) -> None:
    def names(comparison: Comparison) -> list[str]:
        return [comparison.design_name(design) for design in comparison.designs]

    (tmp_path / "b").mkdir()
    catalog, other = make_catalog(tmp_path), make_catalog(tmp_path / "b", ("ant", "bee", "cow"))
    one, two = (make_results(make_tasks(catalog, shot=shot), "pixels", {"ncc": 0.5}) for shot in (1, 2))
    third = make_results(make_tasks(other), "pixels", {"ncc": 0.5})
    assert names(compare_results([two, one])) == ["3-way 1-shot", "3-way 2-shot"]
    assert sorted(names(compare_results([one, third]))) == sorted(
        f"3-way 1-shot, catalog {digest[:8]}" for digest in (catalog.digest, other.digest)
    )


def test_matched_sets_have_a_gap_task_by_task_and_iid_is_the_reference(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    shared = {"match": "the same supports"}
    results = [
        make_results(TaskSet(drawn.table, {**drawn.meta, **shared}), "pixels", {"ncc": accuracy}, seed)
        for seed, (sampler, accuracy) in enumerate({"hard_ood": 0.4, "iid": 0.8}.items())
        for drawn in [make_tasks(catalog, sampler, tasks=40, seed=7)]
    ]
    (row,) = compare_results(results).rows
    assert row.reference is not None
    assert row.accuracy_gap is not None
    assert row.reference.sampler == "iid"
    hard, iid = (one.counts("ncc").accuracy_by_task() for one in results)
    expected = stats.ttest_rel(iid, hard).confidence_interval(0.95)
    assert (row.accuracy_gap.low, row.accuracy_gap.high) == pytest.approx((expected.low, expected.high), abs=1e-10)
