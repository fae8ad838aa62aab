from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.task_size import gaussian_world
from scipy import stats

from shotproof.catalog.catalog import Catalog
from shotproof.errors import InputError, Mismatch, ShotproofError
from shotproof.evaluation.evaluate import evaluate
from shotproof.evaluation.results import Results
from shotproof.features.features import Features
from shotproof.stats.compare import MethodTable, compare
from shotproof.stats.data import data_spread
from shotproof.stats.intervals import Estimate
from shotproof.stats.material import Material
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.report_files import make_catalog, make_results, make_tasks

METHODS = {"ncc": 0.9, "ridge": 0.6, "knn": 0.58}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return make_catalog(tmp_path)


@pytest.fixture
def random(catalog: Catalog) -> Results:
    return make_results(make_tasks(catalog, "random", tasks=40), "pixels", METHODS, seed=1)


@pytest.fixture
def biased(catalog: Catalog) -> Results:
    return make_results(make_tasks(catalog, "fewstab", tasks=50), "pixels", {"ncc": 0.5, "ridge": 0.5, "knn": 0.3})


def values(results: Results, method: str, metric: str) -> np.ndarray:
    """Acc or wAcc of each task, from the rows."""
    shares: dict[int, list[float]] = {}
    for row in results.table.to_pylist():
        if row["method"] == method:
            shares.setdefault(row["task"], []).append(row["n_correct"] / row["n_query"])
    return np.array([np.mean(s) if metric == "acc" else min(s) for s in shares.values()])


def welch(a: np.ndarray, b: np.ndarray, level: float) -> tuple[float, float]:
    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
    return float(interval.low), float(interval.high)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_intervals_and_pairs_are_those_of_scipy(random: Results, level: float) -> None:
    table = compare([random], level=level, correct=False)
    (group,) = table.groups
    for row in group.methods:
        for metric, named in row.intervals.items():
            by_task = values(random, row.method, metric)
            expected = stats.t.interval(level, len(by_task) - 1, by_task.mean(), stats.sem(by_task))
            assert row.means[metric] == pytest.approx(by_task.mean(), abs=1e-12)
            assert (named["sampler"].low, named["sampler"].high) == pytest.approx(expected, abs=1e-10)
    for (metric, _), pairs in group.pairs.items():
        assert [(pair.a, pair.b) for pair in pairs] == list(combinations(METHODS, 2))
        for pair in pairs:
            test = stats.ttest_rel(values(random, pair.a, metric), values(random, pair.b, metric))
            bounds = test.confidence_interval(level)
            assert (pair.interval.low, pair.interval.high) == pytest.approx((bounds.low, bounds.high), abs=1e-10)
            assert pair.p_value == pytest.approx(test.pvalue, abs=1e-10)
            assert pair.conclusion == ("0" if test.pvalue > 1 - level else "+" if test.statistic > 0 else "-")


def test_holm_is_within_a_metric_and_an_interval(random: Results) -> None:
    raw, corrected = (compare([random], correct=correct).groups[0].pairs for correct in (False, True))
    for key, pairs in raw.items():
        order = sorted(range(3), key=lambda i: pairs[i].p_value)
        stepped = [min(1.0, (3 - place) * pairs[i].p_value) for place, i in enumerate(order)]
        expected = dict(zip(order, np.maximum.accumulate(stepped), strict=True))
        assert [pair.p_value for pair in corrected[key]] == pytest.approx([expected[i] for i in range(3)])


def test_random_and_biased_tasks_give_gaps(random: Results, biased: Results) -> None:
    table = compare([biased, random], level=0.9)
    assert [group.name for group in table.groups] == ["fewstab", "random"]
    (gaps,) = table.gaps
    assert gaps.name == "random - fewstab"
    for row in gaps.methods:
        assert row.rank is None
        for metric, named in row.intervals.items():
            a, b = (values(results, row.method, metric) for results in (random, biased))
            assert row.means[metric] == pytest.approx(a.mean() - b.mean())
            assert (named["sampler"].low, named["sampler"].high) == pytest.approx(welch(a, b, 0.9), abs=1e-10)
    pair = gaps.pairs["wacc", "sampler"][0]
    a, b = (values(r, pair.a, "wacc") - values(r, pair.b, "wacc") for r in (random, biased))
    assert (pair.interval.low, pair.interval.high) == pytest.approx(welch(a, b, 0.9), abs=1e-10)


def test_methods_that_cannot_be_told_apart_share_a_rank(random: Results) -> None:
    rows = {row.method: row.rank for row in compare([random]).groups[0].methods}
    assert rows == {"ncc": 1, "ridge": 2, "knn": 2}


def test_encoders_are_named_where_there_are_several(catalog: Catalog) -> None:
    tasks = make_tasks(catalog, "random")
    results = [make_results(tasks, encoder, {"ncc": 0.5}) for encoder in ("lite0", "pixels")]
    assert [row.method for row in compare(results).groups[0].methods] == ["lite0: ncc", "pixels: ncc"]
    assert [row.method for row in compare(results[:1]).groups[0].methods] == ["ncc"]


def test_json_has_the_promised_keys_in_percent_points(random: Results, biased: Results) -> None:
    table = compare([random, biased])
    written = json.loads(json.dumps(table.to_json(), allow_nan=False))
    assert len(written["methods"]) == 6
    first = written["methods"][0]
    assert first.items() >= {"method": "ncc", "rank": 1, "tasks": "random"}.items()
    interval = table.groups[0].methods[0].intervals["wacc"]["sampler"]
    assert first["intervals"]["wacc"]["sampler"] == [100 * interval.low, 100 * interval.high]
    assert first["acc"] == pytest.approx(100 * values(random, "ncc", "acc").mean())
    promised = {"a", "b", "metric", "interval", "difference", "low", "high", "conclusion"}
    assert all(promised <= pair.keys() for pair in written["pairs"])
    assert {pair["conclusion"] for pair in written["pairs"]} <= {"+", "0", "-"}
    assert written["conclusive"][0] == {
        "metric": "acc",
        "interval": "sampler",
        "conclusive": table.groups[0].conclusive("acc", "sampler"),
        "pairs": 3,
        "tasks": "random",
    }


def changed(results: Results, keep: Any = None, **meta: Any) -> Results:
    table = results.table if keep is None else results.table.filter(keep(results.table))
    return Results(table, {**results.meta, **meta})


def test_results_that_are_not_on_the_same_tasks_are_refused(catalog: Catalog, random: Results) -> None:
    other_tasks = make_tasks(catalog, "random", seed=5)
    other_design = make_tasks(catalog, "fewstab", shot=2)
    for tasks in (other_tasks, other_design):
        digests = f"{random.meta['tasks']['digest']}.*{tasks.digest}"
        with pytest.raises(Mismatch, match=digests):
            compare([random, make_results(tasks, "other", {"ncc": 0.5})])
    two_biased = [
        make_results(make_tasks(catalog, sampler, seed=seed), "pixels", {"ncc": 0.5})
        for seed, sampler in enumerate(("fewstab", "hard_ood"))
    ]
    with pytest.raises(Mismatch, match="expected one task set, matched ones, or random or iid tasks and others"):
        compare(two_biased)


def matched(results: Results, key: str) -> Results:
    return changed(results, tasks={**results.meta["tasks"], "match": key})


@pytest.mark.parametrize("samplers", [("random", "hardest"), ("hard_ood", "iid")])
def test_the_gap_of_matched_sets_is_paired_task_by_task(catalog: Catalog, samplers: tuple[str, str]) -> None:
    sets = {
        sampler: matched(make_results(make_tasks(catalog, sampler, tasks=40), "pixels", METHODS, seed), "shared")
        for seed, sampler in enumerate(samplers)
    }
    first, second = sorted(sets, key=["random", "iid", "hardest", "hard_ood"].index)
    (gap,) = compare(list(sets.values())).gaps
    assert gap.name == f"{first} - {second}"
    for row in gap.methods:
        paired = stats.ttest_rel(*(values(sets[sampler], row.method, "acc") for sampler in (first, second)))
        bounds = paired.confidence_interval(0.95)
        interval = row.intervals["acc"]["sampler"]
        assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high), abs=1e-10)


def test_matched_sets_of_any_sampler_are_compared_and_their_tasks_are_counted(catalog: Catalog) -> None:
    origin = make_tasks(catalog, "meta_dataset", tasks=30, seed=1)
    results = [
        matched(make_results(drawn, "pixels", METHODS, seed), origin.digest)
        for seed, drawn in enumerate((make_tasks(catalog, "easiest", tasks=30), origin))
    ]
    assert [gap.name for gap in compare(results).gaps] == ["meta_dataset - easiest"]
    fewer = matched(make_results(make_tasks(catalog, "hardest", tasks=20), "pixels", METHODS), origin.digest)
    with pytest.raises(Mismatch, match="30 and 20 of them"):
        compare([results[1], fewer])


def test_missing_classes_and_tasks_are_named(random: Results) -> None:
    def without(method: str, task: int, slot: int | None) -> Any:
        def keep(table: pa.Table) -> Any:
            rows = [pc.equal(table.column("method"), method), pc.equal(table.column("task"), task)]
            rows += [] if slot is None else [pc.equal(table.column("slot"), slot)]
            gone = rows[0]
            for row in rows[1:]:
                gone = pc.and_(gone, row)
            return pc.invert(gone)

        return keep

    with pytest.raises(Mismatch, match="'ridge' lacks 1 classes of tasks"):
        compare([changed(random, without("ridge", 4, 1))])
    with pytest.raises(Mismatch, match="method 'ncc': task 4 has results for 2 of its 3 classes"):
        compare([changed(random, without("ncc", 4, 1))])
    with pytest.raises(Mismatch, match="39 of the 40 tasks"):
        compare([changed(random, lambda table: pc.greater(table.column("task"), 0))])


def test_one_task_and_constant_accuracy_have_no_interval(catalog: Catalog) -> None:
    lone = compare([make_results(make_tasks(catalog, "random", tasks=1), "pixels", METHODS)])
    perfect = compare([make_results(make_tasks(catalog, "random"), "pixels", {"ncc": 1.0, "ridge": 1.0})])
    for table, reason in ((lone, "one task has no variance"), (perfect, "all 20 tasks have the same value")):
        assert table.refused["sampler"].startswith(reason)
        written = json.loads(json.dumps(table.to_json(), allow_nan=False))
        assert written["methods"][0]["intervals"]["acc"]["sampler"] is None
        assert written["methods"][0]["refused"]["acc"]["sampler"].startswith(reason)
        assert written["methods"][0]["rank"] is None
        assert written["pairs"][0]["low"] is None
        assert written["pairs"][0]["p_value"] is None
        assert written["pairs"][0]["conclusion"] == "0"
    assert json.loads(json.dumps(perfect.to_json()))["methods"][0]["acc"] == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 95}, "did you mean 0.95?"),
        ({"level": 0}, "found 0"),
        ({"level": 1}, "found 1"),
        ({"level": -0.5}, "found -0.5"),
        ({"level": float("nan")}, "found nan"),
        ({"metric": "accuracy"}, "unknown metric 'accuracy': did you mean 'acc'?"),
        ({"intervals": ["image"]}, "unknown interval 'image': did you mean 'images'?"),
        ({"intervals": []}, "name at least one of sampler, depletion, images, classes"),
        ({"intervals": ["images"]}, "no tasks (--tasks), no catalog (--catalog), no features (--features)"),
        ({"intervals": ["depletion"]}, "no catalog (--catalog), no features (--features)"),
    ],
)
def test_bad_options(random: Results, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        compare([random], **options)


def test_attributes_are_asked_for_where_the_sampler_needs_them(random: Results, biased: Results) -> None:
    with pytest.raises(InputError, match=re.escape("no attributes (--attributes)")):
        compare([random, biased], intervals=["classes"])


World = tuple[Catalog, Features, TaskSet, Results]


@pytest.fixture(scope="module")
def world() -> World:
    catalog, features = gaussian_world(classes=8, items=30)
    tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=60)
    return catalog, features, tasks, evaluate(tasks, features, ["ncc", "knn"])


def re_evaluated(world: World, *intervals: str, **options: Any) -> MethodTable:
    catalog, features, tasks, results = world
    material = Material(tasks=[tasks], catalog=catalog, features=[features], splits=10, **options)
    return compare([results], intervals=intervals, material=material)


def test_depletion_is_student_s_interval_on_tasks_without_replacement(world: World) -> None:
    catalog, features, _, _ = world
    depleted = evaluate(sample(catalog, "depletion", way=3, shot=2, query=5), features, ["ncc", "knn"])
    (group,) = re_evaluated(world, "depletion").groups
    ncc, knn = (values(depleted, method, "acc") for method in ("ncc", "knn"))
    expected = stats.t.interval(0.95, len(ncc) - 1, ncc.mean(), stats.sem(ncc))
    found = group.methods[0].intervals["acc"]["depletion"]
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-10)
    assert group.pairs["acc", "depletion"][0].p_value == pytest.approx(stats.ttest_rel(ncc, knn).pvalue, abs=1e-10)
    table = compare([depleted])
    assert table.covers == ("sampler", "depletion")
    own = table.groups[0].methods[0].intervals["acc"]["depletion"]
    assert (own.low, own.high) == pytest.approx(expected, abs=1e-10)


def test_images_and_classes_widen_the_paired_difference(world: World) -> None:
    catalog, features, tasks, results = world
    table = re_evaluated(world, "sampler", "images", "classes")
    spread = data_spread(["images", "classes"], [tasks], catalog, [(features, ["ncc", "knn"])], splits=10)
    difference = Estimate.over_tasks(values(results, "ncc", "acc") - values(results, "knn", "acc"))
    weights = {(0, 0, "ncc", "acc"): 1.0, (0, 0, "knn", "acc"): -1.0}
    for covers in ("images", "classes"):
        expected = spread.widen(difference, covers, weights).interval(covers)
        found = table.groups[0].pairs["acc", covers][0].interval
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    for row in table.groups[0].methods:
        widths = [row.intervals["acc"][name].half_width for name in table.covers]
        assert widths == sorted(widths)


def test_encoders_are_compared_on_the_same_halves(world: World) -> None:
    catalog, features, tasks, results = world
    noise = np.random.default_rng(0).normal(size=features.array.shape)
    other = Features.from_array(
        features.table.column("item"), features.array + noise, {"made_by": {"encoder": "noisy"}}
    )
    on_other = evaluate(tasks, other, ["ncc"])
    material = Material([tasks], catalog, [features, other], splits=10)
    (group,) = compare([results, on_other], intervals=["sampler", "images"], material=material).groups
    first = [row.method for row in group.methods if row.method.endswith(": ncc")]
    (pair,) = [one for one in group.pairs["acc", "images"] if [one.a, one.b] == first]
    (narrow,) = [one for one in group.pairs["acc", "sampler"] if [one.a, one.b] == first]
    assert pair.interval.half_width > narrow.interval.half_width
    # An encoder against a copy of itself differs by nothing, whatever the halves.
    copy = Features(features.table, {"made_by": {"encoder": "copy"}})
    twice = compare(
        [results, evaluate(tasks, copy, ["knn"])], intervals=["images"], material=Material([tasks], catalog, [features])
    )
    (same,) = [one for one in twice.groups[0].pairs["acc", "images"] if one.a.endswith("knn") and one.b.endswith("knn")]
    assert same.interval.mean == 0


def test_the_number_of_workers_changes_nothing(world: World) -> None:
    one, two = (re_evaluated(world, "images", workers=workers) for workers in (1, 2))
    assert one.to_json() == two.to_json()


def test_data_too_small_for_halves_is_a_reason_and_the_others_still_come() -> None:
    catalog, features = gaussian_world(classes=5, items=30)
    tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=30)
    world = catalog, features, tasks, evaluate(tasks, features, ["ncc"])
    table = re_evaluated(world, "sampler", "images", "classes")
    assert "halves of the classes need 6 classes" in table.refused["classes"]
    intervals = table.groups[0].methods[0].intervals["acc"]
    assert [name for name, one in intervals.items() if one.refused is None] == ["sampler", "images"]
    assert table.to_json()["methods"][0]["intervals"]["acc"]["classes"] is None


def test_depletion_of_biased_tasks_is_refused(biased: Results) -> None:
    table = compare([biased], intervals=["depletion"])
    assert "only random tasks can be drawn without replacement" in table.refused["depletion"]


def test_material_of_other_results_is_refused(world: World) -> None:
    catalog, features, tasks, results = world
    other_catalog, other_features = gaussian_world(classes=8, items=30, seed=1)
    other_tasks = sample(catalog, "random", way=3, shot=2, query=5, tasks=60, seed=1)
    bigger, _ = gaussian_world(classes=9, items=30)
    for material, message in (
        (Material([other_tasks], catalog, [features]), f"{tasks.digest}, which was not given"),
        (Material([tasks], other_catalog, [other_features]), f"on features {features.digest}, not on those given"),
        (Material([tasks], bigger, [features]), f"from catalog {catalog.digest}, not from {bigger.digest}"),
    ):
        with pytest.raises(Mismatch, match=message):
            compare([results], intervals=["images"], material=material)
    with pytest.raises(Mismatch, match=f"from catalog {catalog.digest}, not from {bigger.digest}"):
        compare([results], intervals=["depletion"], material=Material(catalog=bigger, features=[features]))


class Stubborn:
    """An estimator that always gives the first label."""

    def fit(self, rows: Any, labels: Any) -> None:
        self.first = min(labels)

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.first)


def test_methods_that_have_no_name_to_make_them_from_are_given(world: World) -> None:
    catalog, features, tasks, _ = world
    results = evaluate(tasks, features, ["ncc", Stubborn()])
    material = {"catalog": catalog, "features": [features]}
    with pytest.raises(ShotproofError, match="method 'Stubborn' of the results cannot be made anew"):
        compare([results], intervals=["depletion"], material=Material(**material))
    table = compare([results], intervals=["depletion"], material=Material(**material, methods=[Stubborn()]))
    assert table.groups[0].pairs["acc", "depletion"][0].conclusion == "+"
