"""Replicates, that is task sets that differ in the seed alone, and detectors, in one comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from shotproof.analysis.compare import compare
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.comparison import Comparison
from shotproof.core.errors import Mismatch
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.evaluated import evaluated_sets
from shotproof.results.results import Results
from tests.context_data import catalog_of_counts, sample_context
from tests.drawn_results import draw_results, draw_tasks, values_of

METHODS = {"ncc": 0.8, "ridge": 0.7, "knn": 0.5}


def compared(*results: Results, **options: Any) -> Comparison:
    return compare_sets(evaluated_sets(results), ("sampler",), **options)


def on_seeds(sampler: str, seeds: tuple[int, ...], tasks: int = 30, **options: Any) -> list[Results]:
    return [
        draw_results(draw_tasks(sampler, tasks=tasks, seed=seed, **options), METHODS, seed=seed + len(sampler))
        for seed in seeds
    ]


def pooled(results: list[Results], method: str, metric: str) -> np.ndarray:
    return np.concatenate([values_of(result, method, metric) for result in results])


def test_replicates_are_pooled_and_their_spread_stands_beside_the_interval() -> None:
    results = [*on_seeds("random", (2, 0)), *on_seeds("random", (1,), tasks=50)]
    (group,) = compared(*results).groups
    assert (group.tasks, group.seeds, len(group.digests)) == (110, [0, 1, 2], 3)
    for row in group.rows:
        for metric, named in row.intervals.items():
            values = pooled(results, row.classifier.method, metric)
            expected = stats.t.interval(0.95, 109, values.mean(), stats.sem(values))
            assert row.means[metric] == pytest.approx(values.mean())
            assert (named["sampler"].low, named["sampler"].high) == pytest.approx(expected)
            means = {
                seed: values_of(results[at], row.classifier.method, metric).mean()
                for seed, at in ((0, 1), (1, 2), (2, 0))
            }
            assert row.seeds[metric] == pytest.approx(means)
            assert row.spread(metric) == pytest.approx(np.std(list(means.values()), ddof=1))
    pair = group.pairs["acc", "sampler"][0]
    test = stats.ttest_rel(pooled(results, "ncc", "acc"), pooled(results, "ridge", "acc"))
    assert pair.interval.mean == pytest.approx((pooled(results, "ncc", "acc") - pooled(results, "ridge", "acc")).mean())
    assert compared(*results, correct=False).groups[0].pairs["acc", "sampler"][0].p_value == pytest.approx(test.pvalue)


def test_one_seed_has_no_spread() -> None:
    (group,) = compared(*on_seeds("random", (4,))).groups
    assert group.rows[0].spread("acc") is None


def test_gaps_of_replicates_are_welchs_and_taken_seed_by_seed() -> None:
    random, biased = on_seeds("random", (0, 1)), on_seeds("fewstab", (1, 0, 5))
    (gap,) = compared(*random, *biased).gaps
    row = gap.rows[0]
    expected = stats.ttest_ind(pooled(random, "ncc", "wacc"), pooled(biased, "ncc", "wacc"), equal_var=False)
    bounds = expected.confidence_interval(0.95)
    interval = row.intervals["wacc"]["sampler"]
    assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))
    means = [
        values_of(random[s], "ncc", "wacc").mean() - values_of(biased[1 - s], "ncc", "wacc").mean() for s in (0, 1)
    ]
    assert row.seeds["wacc"] == pytest.approx({0: means[0], 1: means[1]})  # the third seed has no reference
    assert gap.seeds == [0, 1]


def matched(sampler: str, seeds: tuple[int, ...]) -> list[Results]:
    return [on_seed for seed in seeds for on_seed in on_seeds(sampler, (seed,), match=f"of seed {seed}")]


def test_matched_replicates_are_paired_seed_by_seed() -> None:
    random, hardest = matched("random", (0, 1)), matched("hardest", (1, 0))
    (gap,) = compared(*random, *hardest).gaps
    assert gap.paired
    difference = pooled(random, "ncc", "acc") - pooled(hardest[::-1], "ncc", "acc")
    expected = stats.t.interval(0.95, 59, difference.mean(), stats.sem(difference))
    interval = gap.rows[0].intervals["acc"]["sampler"]
    assert (interval.low, interval.high) == pytest.approx(expected)


def test_where_some_seeds_alone_are_matched_these_are_paired_and_the_others_independent() -> None:
    random, hardest = matched("random", (0, 1)), matched("hardest", (0,))
    (gap,) = compared(*random, *hardest).gaps
    paired = values_of(random[0], "ncc", "acc") / 2 - values_of(hardest[0], "ncc", "acc")
    alone = values_of(random[1], "ncc", "acc") / 2
    interval = gap.rows[0].intervals["acc"]["sampler"]
    assert interval.mean == pytest.approx(pooled(random, "ncc", "acc").mean() - pooled(hardest, "ncc", "acc").mean())
    bounds = stats.ttest_ind(paired, -alone, equal_var=False).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))


def test_a_classifier_that_lacks_a_seed_is_left_out_and_named() -> None:
    first, second = (draw_tasks(seed=seed) for seed in (0, 1))
    results = [draw_results(first, {"ncc": 0.5, "knn": 0.5}), draw_results(second, {"ncc": 0.5})]
    comparison = compared(*results)
    assert [row.classifier.method for row in comparison.groups[0].rows] == ["ncc"]
    (note,) = comparison.notes
    assert note.startswith("random: knn on pixels is left out")
    assert "seeds" in note
    with pytest.raises(Mismatch, match=f"{first.digest} and {second.digest}.*evaluate .*on all of them"):
        compared(draw_results(first, {"knn": 0.5}), draw_results(second, {"ncc": 0.5}))


def test_detectors_stand_side_by_side_with_their_correlation() -> None:
    accuracies = {"captions": (0.6, 0.5, 0.4, 0.3), "photometric": (0.55, 0.35, 0.45, 0.3)}
    names = ("ncc", "ridge", "knn", "svm")
    results = {
        detector: draw_results(draw_tasks("fewstab", tasks=200, detector=detector), dict(zip(names, of, strict=True)))
        for detector, of in accuracies.items()
    }
    random = draw_results(draw_tasks(), dict.fromkeys(names, 0.7))
    detection = {("attributes-of-captions", "attributes-of-photometric"): (70.12, 59.28)}
    sets = evaluated_sets([random, *results.values()])
    comparison = compare_sets(sets, ("sampler",), detection={sets[0].origin.design: detection})
    assert [group.label for group in comparison.groups] == ["random", "fewstab [captions]", "fewstab [photometric]"]
    (agreement,) = comparison.blocks[0].detectors
    worst = [[values_of(result, name, "wacc").mean() for name in names] for result in results.values()]
    assert agreement.correlation == pytest.approx(stats.spearmanr(*worst).statistic)
    assert agreement.correlation < 1
    assert (agreement.sampler, agreement.detectors, agreement.classifiers) == (
        "fewstab",
        ("captions", "photometric"),
        4,
    )
    assert agreement.accuracy == (70.12, 59.28)
    assert compare_sets(sets, ("sampler",)).blocks[0].detectors[0].accuracy is None


def results_of(contexts: int, way: int, shots: tuple[int, ...] = (1,)) -> list[Results]:
    catalog = catalog_of_counts(np.full((4, contexts), 12))
    random = np.random.default_rng(0)
    features = Features.from_array(catalog.items, random.normal(size=(len(catalog), 4)))
    return [
        evaluate(tasks, features, "ncc")
        for shot in shots
        for tasks in sample_context(catalog, way=way, shot=shot, query=3, tasks=8).values()
    ]


def test_of_two_contexts_ood_and_hard_ood_are_one() -> None:
    comparison = compare(results_of(contexts=2, way=2), intervals="sampler")
    assert [[group.label for group in block.groups] for block in comparison.blocks] == [["iid", "ood"]]
    assert [[loss.label for loss in block.losses] for block in comparison.blocks] == [["ood"]]
    assert comparison.notes == ["ood and hard-ood are the same tasks here"]


def test_without_more_queries_than_other_classes_they_are_one_too() -> None:
    comparison = compare(results_of(contexts=4, way=4), intervals="sampler")
    assert [loss.label for loss in comparison.blocks[0].losses] == ["ood"]
    assert comparison.notes == ["ood and hard-ood are the same tasks here"]


def test_a_classifier_that_was_evaluated_under_one_name_alone_is_not_lost() -> None:
    iid, ood, hard = results_of(contexts=2, way=2)
    renamed = replace(hard, record=replace(hard.record, features=replace(hard.record.features, name="other")))
    (block,) = compare([iid, ood, renamed]).blocks
    assert [len(group.rows) for group in block.groups] == [1, 2]


def test_each_design_is_told_apart() -> None:
    comparison = compare(results_of(contexts=2, way=2, shots=(1, 2)), intervals="sampler")
    assert comparison.notes == [
        "2-way 1-shot: ood and hard-ood are the same tasks here",
        "2-way 2-shot: ood and hard-ood are the same tasks here",
    ]


def test_of_three_contexts_they_are_two() -> None:
    comparison = compare(results_of(contexts=3, way=2), intervals="sampler")
    assert [loss.label for loss in comparison.blocks[0].losses] == ["ood", "hard-ood"]
    assert comparison.notes == []


def test_the_words_for_items_and_contexts_come_from_the_records() -> None:
    plain = results_of(contexts=3, way=2)
    assert (compare(plain).medium, compare(plain).context) == (None, "context")
    told = [_as(given, "sound", "speaker") for given in plain]
    comparison = compare(told)
    assert (comparison.medium, comparison.context) == ("sound", "speaker")
    assert "same recordings; it says nothing about new recordings" in comparison.to_json()["covers"]["sampler"]
    assert compare([*told[:-1], _as(plain[-1], "image", "speaker")]).medium is None


def _as(given: Results, medium: str, column: str) -> Results:
    tasks = given.record.tasks
    assert tasks.sampler is not None
    sampler = replace(tasks.sampler, options={**tasks.sampler.options, "context_column": column})
    return replace(given, record=replace(given.record, tasks=replace(tasks, medium=medium, sampler=sampler)))


def test_tasks_remember_what_their_items_are() -> None:
    catalog = catalog_of_counts(np.full((4, 3), 12))
    paths = catalog.table.column_names.index("path")
    sounds = Catalog(catalog.table.set_column(paths, "path", [[f"{item}.wav" for item in catalog.items]]))
    for tasks in sample_context(sounds, way=2, shot=1, query=3, tasks=2).values():
        assert tasks.record.medium == "sound"
