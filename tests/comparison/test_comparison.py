"""The model of a comparison on made-up results; what re-evaluates is tested with `compare`."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import InputError, Mismatch
from shotproof.core.records import ResultsRecord
from shotproof.results.evaluated import METRICS, evaluated_sets
from shotproof.results.results import Results
from tests.drawn_results import draw_results, draw_tasks, values_of

METHODS = {"ncc": 0.9, "ridge": 0.6, "knn": 0.58}
BIASED = {"ncc": 0.5, "ridge": 0.5, "knn": 0.3}
BOTH = (draw_tasks(), draw_tasks("fewstab"))


def compared(*results: Results, **options: Any) -> Comparison:
    return compare_sets(evaluated_sets(results), ("sampler",), **options)


@pytest.fixture
def random() -> Results:
    return draw_results(draw_tasks(tasks=40), METHODS, seed=1)


@pytest.fixture
def biased() -> Results:
    return draw_results(draw_tasks("fewstab", tasks=50, detector="captions"), BIASED)


def experiment() -> list[Results]:
    """Two encoders and two methods on random and FewSTAB tasks of 1 and 2 shots."""
    return [
        draw_results(
            draw_tasks(sampler, shot=shot, tasks=30), {"ncc": 0.9 - loss, "ridge": 0.8 - loss / 2}, encoder, shot
        )
        for shot in (1, 2)
        for sampler in ("random", "fewstab")
        for encoder, loss in (("pixels", 0.4 * (sampler != "random")), ("other encoder", 0.1 * (sampler != "random")))
    ]


def welch(a: np.ndarray, b: np.ndarray, level: float) -> tuple[float, float]:
    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
    return float(interval.low), float(interval.high)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_intervals_and_pairs_are_those_of_scipy(random: Results, level: float) -> None:
    (group,) = compared(random, level=level, correct=False).groups
    for row in group.rows:
        for metric, named in row.intervals.items():
            by_task = values_of(random, row.classifier.method, metric)
            expected = stats.t.interval(level, len(by_task) - 1, by_task.mean(), stats.sem(by_task))
            assert row.means[metric] == pytest.approx(by_task.mean(), abs=1e-10)
            assert (named["sampler"].low, named["sampler"].high) == pytest.approx(expected, abs=1e-8)
    for (metric, _), pairs in group.pairs.items():
        assert [(pair.a.method, pair.b.method) for pair in pairs] == list(combinations(METHODS, 2))
        for pair, (a, b) in zip(pairs, combinations(METHODS, 2), strict=True):
            test = stats.ttest_rel(values_of(random, a, metric), values_of(random, b, metric))
            bounds = test.confidence_interval(level)
            assert (pair.interval.low, pair.interval.high) == pytest.approx((bounds.low, bounds.high), abs=1e-8)
            assert pair.p_value == pytest.approx(test.pvalue, abs=1e-10)
            assert pair.conclusion == ("0" if test.pvalue > 1 - level else "+" if test.statistic > 0 else "-")


def test_holm_is_within_a_metric_and_an_interval(random: Results) -> None:
    raw, corrected = (compared(random, correct=correct).groups[0].pairs for correct in (False, True))
    for key, pairs in raw.items():
        order = sorted(range(3), key=lambda i: pairs[i].p_value)
        stepped = [min(1.0, (3 - place) * pairs[i].p_value) for place, i in enumerate(order)]
        expected = dict(zip(order, np.maximum.accumulate(stepped), strict=True))
        assert [pair.p_value for pair in corrected[key]] == pytest.approx([expected[i] for i in range(3)])


def test_random_and_biased_tasks_give_gaps(random: Results, biased: Results) -> None:
    comparison = compared(biased, random, level=0.9)
    assert [group.name for group in comparison.groups] == ["fewstab", "random"]
    assert {row.reference for row in comparison.rows("gap")} == {"random"}
    (gaps,) = comparison.gaps
    assert (gaps.name, gaps.paired, gaps.detector) == ("random - fewstab", False, "captions")
    for row in gaps.rows:
        assert row.rank("acc") is None
        for metric, named in row.intervals.items():
            a, b = (values_of(results, row.classifier.method, metric) for results in (random, biased))
            assert row.means[metric] == pytest.approx(a.mean() - b.mean())
            assert (named["sampler"].low, named["sampler"].high) == pytest.approx(welch(a, b, 0.9), abs=1e-8)
    pair = gaps.pairs["wacc", "sampler"][0]
    a, b = (values_of(r, "ncc", "wacc") - values_of(r, "ridge", "wacc") for r in (random, biased))
    assert (pair.interval.low, pair.interval.high) == pytest.approx(welch(a, b, 0.9), abs=1e-8)


def test_methods_that_cannot_be_told_apart_share_a_range_of_ranks(random: Results) -> None:
    rows = {row.classifier.method: str(row.rank("acc")) for row in compared(random).groups[0].rows}
    assert rows == {"ncc": "1 of 3", "ridge": "2 to 3 of 3", "knn": "2 to 3 of 3"}


def test_encoders_are_named_where_there_are_several() -> None:
    results = [draw_results(draw_tasks(), {"ncc": 0.5}, encoder) for encoder in ("lite0", "pixels")]
    both, one = compared(*results), compared(results[0])
    assert [both.classifier_name(row.classifier) for row in both.groups[0].rows] == ["lite0: ncc", "pixels: ncc"]
    assert both.pair_names(both.groups[0].pairs["acc", "sampler"][0]) == ("lite0: ncc", "pixels: ncc")
    assert [one.classifier_name(row.classifier) for row in one.groups[0].rows] == ["ncc"]


def test_encoders_that_are_files_are_told_by_short_names_wherever_people_read_them() -> None:
    spellings = ("model:nets/a.model", "model:nets/b.model > l2")
    results = [draw_results(tasks, {"ncc": 0.5, "knn": 0.4}, encoder) for encoder in spellings for tasks in BOTH]
    comparison = compared(*results)
    assert comparison.encoders == list(spellings)
    assert comparison.encoder_names == {"model:nets/a.model": "a", "model:nets/b.model > l2": "b > l2"}
    first = comparison.groups[0].rows[0].classifier
    assert (comparison.classifier_name(first), comparison.classifier_title(first)) == ("a: ncc", "ncc on a")
    told = [*comparison.verdict(), comparison.to_csv(), comparison.to_latex(), comparison.to_html(), repr(comparison)]
    assert "nets/" not in " ".join(told)
    assert comparison.to_json()["encoders"] == {name: whole for whole, name in comparison.encoder_names.items()}


def test_rows_hold_the_reference_the_other_tasks_and_the_gap() -> None:
    results = experiment()
    comparison = compared(*results)
    assert len(comparison.rows("gap")) == 2 * 2 * 2  # encoders, methods, designs
    row = comparison.rows("gap", "wacc")[-1]
    assert (*row.classifier, row.design.shot) == ("other encoder", "ridge", 2)
    for tasks, given_results in ((row.reference, results[5]), (row.tasks, results[7])):
        for metric in METRICS:
            measured = comparison.matching_row(row, "accuracy", metric, tasks)
            assert measured is not None
            assert (measured.tasks, measured.task_count) == (tasks, 30)
            values = values_of(given_results, "ridge", metric)
            expected = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
            assert (measured.interval.low, measured.interval.high) == pytest.approx(expected)
    assert comparison.matching_row(row, "excess") is None
    # Welch's interval by its formula.
    a, b = (values_of(results[number], "ridge", "wacc") for number in (5, 7))
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    assert row.axis == "attributes"
    assert row.interval.mean == pytest.approx(a.mean() - b.mean())
    assert row.interval.half_width == pytest.approx(stats.t.ppf(0.975, freedom) * np.sqrt(va + vb))


def test_agreement_is_over_all_classifiers_of_a_design() -> None:
    results = experiment()
    agreement = compared(*results).agreements[0]
    pairs = [(r, b, m) for r, b in ((results[0], results[2]), (results[1], results[3])) for m in ("ncc", "ridge")]
    accuracy = [values_of(r, m, "acc").mean() for r, _, m in pairs]
    worst = [values_of(r, m, "wacc").mean() for r, _, m in pairs]
    other = [values_of(b, m, "wacc").mean() for _, b, m in pairs]

    def spearman(x: list[float], y: list[float]) -> float:
        return float(np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1])

    assert (agreement.design.shot, agreement.label, agreement.classifiers) == (1, "fewstab", 4)
    assert agreement.accuracy_with_worst == pytest.approx(spearman(accuracy, other))
    assert agreement.worst_with_worst == pytest.approx(spearman(worst, other))
    assert agreement.average_drop == pytest.approx(np.mean(worst) - np.mean(other))


def test_one_side_alone_has_no_gap() -> None:
    fewstab = draw_results(draw_tasks("fewstab"), {"ncc": 0.5})
    comparison = compared(draw_results(draw_tasks(shot=2), {"ncc": 0.5}), fewstab)  # of different designs
    assert comparison.rows("gap") == []
    assert [(row.design.shot, row.tasks, row.reference) for row in comparison.rows()] == [
        (1, "fewstab", None),
        (2, "random", None),
    ]


def test_task_sets_without_a_classifier_in_common_have_no_gap() -> None:
    random, fewstab = draw_results(draw_tasks(), {"ncc": 0.5}), draw_results(draw_tasks("fewstab"), {"knn": 0.5})
    comparison = compared(random, fewstab)
    assert (comparison.gaps, comparison.agreements) == ([], [])
    assert [row.classifier.method for row in comparison.rows()] == ["ncc", "knn"]


def test_any_other_sampler_is_compared_with_random() -> None:
    spellings = ("random", "fewstab", "hardest(effort='high')", "hardest(effort='low')")
    results = [draw_results(draw_tasks(sampler), {"ncc": 0.6}, seed=i) for i, sampler in enumerate(spellings)]
    comparison = compared(*results)
    assert [(row.tasks, row.reference) for row in comparison.rows("gap")] == [
        (label, "random") for label in spellings[1:]
    ]


def test_without_a_reference_task_sets_stand_side_by_side() -> None:
    results = [draw_results(draw_tasks(sampler), {"ncc": 0.5}) for sampler in ("fewstab", "hard-ood")]
    comparison = compared(*results)
    assert [group.label for group in comparison.groups] == ["fewstab", "hard-ood"]
    assert comparison.gaps == []
    assert [row.reference for row in comparison.rows()] == [None, None]


def test_different_tasks_that_claim_one_seed_are_refused() -> None:
    sets = [draw_tasks(seed=seed) for seed in (1, 2)]
    claimed = replace(sets[1], record=replace(sets[1].record, seed=1))
    for encoders in (("pixels", "pixels"), ("pixels", "other")):
        results = [draw_results(t, {"ncc": 0.5}, name) for t, name in zip((sets[0], claimed), encoders, strict=True)]
        with pytest.raises(Mismatch, match=f"{sets[0].digest}.*{sets[1].digest}"):
            compared(*results)


def test_the_same_results_twice_count_once_but_other_counts_are_refused() -> None:
    tasks = draw_tasks()
    first, other = (draw_results(tasks, {"ncc": 0.5}, seed=seed) for seed in (1, 2))
    assert compared(first, first) == compared(first)
    with pytest.raises(Mismatch, match="two different results of method 'ncc' on encoder 'pixels'"):
        compared(first, Results(other.table, replace(other.record, seed=1)))


def test_seeds_of_evaluation_are_averaged_task_by_task() -> None:
    tasks = draw_tasks(tasks=30)
    results = [draw_results(tasks, {"ncc": 0.5, "knn": 0.4}, seed=seed) for seed in (1, 2, 3)]
    (group,) = compared(*results).groups
    mean = np.mean([values_of(result, "ncc", "wacc") for result in results], axis=0)
    expected = stats.t.interval(0.95, 29, mean.mean(), stats.sem(mean))
    interval = group.rows[0].intervals["wacc"]["sampler"]
    assert (interval.low, interval.high) == pytest.approx(expected)
    assert (group.tasks, group.seeds) == (30, [0])


def test_no_results_are_refused() -> None:
    with pytest.raises(InputError, match="at least one results file"):
        evaluated_sets([])


def test_results_without_a_record_are_of_an_unknown_sampler(random: Results) -> None:
    unknown = Results(random.table)
    row = compared(unknown).rows()[0]
    assert (row.classifier.encoder, row.tasks, row.sampler, row.reference) == ("unknown", "unknown", "unknown", None)
    assert (row.design.way, row.design.shot, row.design.query) == (3, None, 4)  # way and query from the counts


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["made_by", "from", "digest", "sampler", "way", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
ONE = draw_results(draw_tasks(tasks=5), {"ncc": 0.5}).table


@settings(max_examples=60, deadline=None)
@given(
    meta=st.dictionaries(st.sampled_from(["tasks", "features", "made_by", "sources", "seed"]), json_values),
    version=st.sampled_from([1, 2]),
)
def test_metadata_is_refused_where_it_is_read_or_can_be_compared(meta: dict[str, Any], version: int) -> None:
    record = None
    with contextlib.suppress(InputError):
        record = ResultsRecord.read({**meta, "format": version})
    assert record is None or len(compared(Results(ONE, record)).rows()) == 1


def test_designs_are_named_by_what_tells_them_apart() -> None:
    def names(*results: Results) -> list[str]:
        comparison = compared(*results)
        return [comparison.design_name(design) for design in comparison.designs]

    one, two = (draw_results(draw_tasks(shot=shot), {"ncc": 0.5}) for shot in (1, 2))
    other = draw_results(draw_tasks(data_set="sounds"), {"ncc": 0.5})
    validation = draw_results(draw_tasks(split="val"), {"ncc": 0.5})
    assert names(two, one) == ["3-way 1-shot", "3-way 2-shot"]
    assert names(other, one) == ["birds, 3-way 1-shot", "sounds, 3-way 1-shot"]
    assert names(one, validation) == ["3-way 1-shot, split test", "3-way 1-shot, split val"]


def test_several_data_sets_are_blocks_of_one_comparison(random: Results, biased: Results) -> None:
    sounds = [
        draw_results(draw_tasks(sampler, data_set="sounds", tasks=30), {"ncc": accuracy, "svm": 0.5})
        for sampler, accuracy in (("random", 0.8), ("fewstab", 0.4))
    ]
    both = compared(random, *sounds, biased)
    assert [block.design.data_set for block in both.blocks] == ["birds", "sounds"]
    assert both.methods == ["ncc", "ridge", "knn", "svm"]
    assert both.blocks[0].groups == compared(random, biased).groups
    assert both.blocks[1].gaps == compared(*sounds).gaps
    assert repr(both) == (
        "<Comparison of ncc, ridge, knn, svm on pixels; birds, 3-way 1-shot: random, fewstab; "
        "sounds, 3-way 1-shot: random, fewstab>"
    )


@pytest.mark.parametrize("samplers", [("random", "hardest"), ("hard-ood", "iid")])
def test_the_gap_of_matched_sets_is_paired_task_by_task(samplers: tuple[str, str]) -> None:
    sets = {
        sampler: draw_results(draw_tasks(sampler, tasks=40, match="shared"), METHODS, seed=seed)
        for seed, sampler in enumerate(samplers)
    }
    first, second = sorted(sets, key=["random", "iid", "hardest", "hard-ood"].index)
    (gap,) = compared(*sets.values()).gaps
    assert (gap.name, gap.paired) == (f"{first} - {second}", True)
    for row in gap.rows:
        paired = stats.ttest_rel(
            *(values_of(sets[sampler], row.classifier.method, "acc") for sampler in (first, second))
        )
        bounds = paired.confidence_interval(0.95)
        interval = row.intervals["acc"]["sampler"]
        assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high), abs=1e-8)


def test_matched_sets_of_any_sampler_are_compared_and_their_tasks_are_counted() -> None:
    origin = draw_tasks("meta-dataset", tasks=30)
    easiest, hardest = (
        draw_results(draw_tasks(sampler, tasks=tasks, match=origin.digest), METHODS)
        for sampler, tasks in (("hardest(mode='easy')", 30), ("hardest", 20))
    )
    on_origin = draw_results(origin, METHODS, seed=1)
    assert [gap.name for gap in compared(easiest, on_origin).gaps] == ["meta-dataset - hardest"]
    with pytest.raises(Mismatch, match="30 and 20 of them"):
        compared(on_origin, hardest)


def test_missing_classes_and_tasks_are_named(random: Results) -> None:
    rows = random.table.to_pylist()

    def left(**gone: Any) -> Results:
        kept = [row for row in rows if any(row[key] != value for key, value in gone.items())]
        return Results(pa.Table.from_pylist(kept), random.record)

    with pytest.raises(Mismatch, match="'ridge' lacks 1 classes of tasks"):
        compared(left(method="ridge", task=4, slot=1))
    with pytest.raises(Mismatch, match="method 'ncc': task 4 has results for 2 of its 3 classes"):
        compared(left(method="ncc", task=4, slot=1))
    with pytest.raises(Mismatch, match="39 of the 40 tasks"):
        compared(left(task=0))


@pytest.mark.parametrize(
    ("tasks", "accuracy", "reason"), [(1, 0.5, "one task has no variance"), (9, 1.0, "all 9 tasks have the same value")]
)
def test_one_task_and_constant_accuracy_have_no_interval(tasks: int, accuracy: float, reason: str) -> None:
    comparison = compared(draw_results(draw_tasks(tasks=tasks), {"ncc": accuracy, "ridge": accuracy}))
    assert comparison.refused["sampler"].startswith(reason)
    assert comparison.blocks[0].refused == comparison.refused
    assert [row.rank("acc") for row in comparison.groups[0].rows] == [None, None]
    assert comparison.groups[0].pairs["acc", "sampler"][0].conclusion == "0"
