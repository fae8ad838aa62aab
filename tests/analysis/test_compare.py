"""Comparing with inputs to re-evaluate on; the comparison itself is tested with its model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.halvings import means_on_halves
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.comparison import Comparison
from shotproof.core.arrays import IntArray
from shotproof.core.errors import InputError, Mismatch, ShotproofError
from shotproof.core.records import FeaturesRecord, Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.learners.items import ItemsMethod, ItemsTask
from shotproof.results.evaluated import Classifier
from shotproof.results.results import Results
from shotproof.stats.intervals import Estimate
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.conftest import draw_data
from tests.drawn_results import draw_results, draw_tasks, values_of

World = tuple[Catalog, Features, TaskSet, Results]
SHAPE: dict[str, Any] = {"way": 3, "shot": 2, "query": 5}


def make_world(classes: int = 8, items: int = 30, seed: int = 0) -> tuple[Catalog, Features]:
    """Classes around Gaussian means."""
    random = np.random.default_rng(seed)
    values = random.normal(scale=0.8, size=(classes, 1, 8)) + random.normal(size=(classes, items, 8))
    names = [f"{c:03d}/{i:04d}" for c in range(classes) for i in range(items)]
    columns = {"item": names, "path": names, "label": [name[:3] for name in names], "split": ["test"] * len(names)}
    return Catalog(pa.table(columns)), Features.from_array(names, values.reshape(-1, 8))


@pytest.fixture(scope="module")
def world() -> World:
    catalog, features = make_world()
    tasks = sample(catalog, "random", **SHAPE, tasks=60)
    return catalog, features, tasks, evaluate(tasks, features, ["ncc", "knn"])


def material_of(world: World, **changes: Any) -> Inputs:
    catalog, features, tasks, results = world
    given = {"results": [results], "tasks": [tasks], "catalogs": [catalog], "features": [features], "halvings": 10}
    return Inputs(**{**given, **changes})


def re_evaluated(world: World, *intervals: str, runtime: Runtime | None = None) -> Comparison:
    return compare(material_of(world), intervals=intervals, runtime=runtime)


def test_results_alone_a_list_of_them_and_material_say_the_same(world: World) -> None:
    results = world[3]
    assert compare(results) == compare([results]) == compare(Inputs([results]))


def test_the_material_may_be_given_apart_and_one_interval_by_its_name(world: World) -> None:
    apart = compare(Inputs([world[3]]), intervals="depletion", inputs=material_of(world))
    assert apart == re_evaluated(world, "depletion")


def test_depletion_is_students_interval_on_tasks_without_replacement(world: World) -> None:
    catalog, features, _, _ = world
    depleted = evaluate(sample(catalog, "depletion", **SHAPE), features, ["ncc", "knn"])
    comparison = re_evaluated(world, "depletion")
    (group,) = comparison.groups
    ncc, knn = (values_of(depleted, method, "acc") for method in ("ncc", "knn"))
    expected = stats.t.interval(0.95, len(ncc) - 1, ncc.mean(), stats.sem(ncc))
    found = group.rows[0].intervals["acc"]["depletion"]
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-8)
    assert group.pairs["acc", "depletion"][0].p_value == pytest.approx(stats.ttest_rel(ncc, knn).pvalue, abs=1e-10)
    (note,) = comparison.notes
    assert note.startswith(f"depletion: {len(ncc)} tasks ")
    assert "without replacement" in note
    own = compare(depleted)
    assert own.interval_names == ("sampler", "depletion")
    interval = own.groups[0].rows[0].intervals["acc"]["depletion"]
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-8)


def test_images_and_classes_widen_the_paired_difference(world: World) -> None:
    catalog, features, tasks, results = world
    comparison = re_evaluated(world, "sampler", "images", "classes")
    difference = Estimate.over_tasks(values_of(results, "ncc", "acc") - values_of(results, "knn", "acc"))
    encoder = comparison.encoders[0]
    weights = {
        (tasks.digest, Classifier(encoder, method), "acc"): sign for method, sign in (("ncc", 1.0), ("knn", -1.0))
    }
    for interval_name in ("images", "classes"):
        means = means_on_halves([tasks], catalog, [(encoder, features, ["ncc", "knn"])], interval_name, halvings=10)  # type: ignore[arg-type]
        expected = difference.plus(means.spread(weights)).interval(interval_name)
        found = comparison.groups[0].pairs["acc", interval_name][0].interval  # type: ignore[index]
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-8)
    for row in comparison.groups[0].rows:
        widths = [row.intervals["acc"][name].half_width for name in comparison.interval_names]
        assert widths == sorted(widths)


def test_encoders_are_compared_on_the_same_halves(world: World) -> None:
    catalog, features, tasks, results = world
    noise = np.random.default_rng(0).normal(size=features.array.shape)
    noisy = Features.from_array(list(catalog.items), features.array + noise, name="noisy")
    given = material_of(world, results=[results, evaluate(tasks, noisy, ["ncc"])], features=[features, noisy])
    comparison = compare(given, intervals=["sampler", "images"])
    (group,) = comparison.groups

    def of_ncc(interval_name: Any) -> Any:
        return next(
            pair
            for pair in group.pairs["acc", interval_name]
            if all(name.endswith(": ncc") for name in comparison.pair_names(pair))
        )

    assert of_ncc("images").interval.half_width > of_ncc("sampler").interval.half_width
    # An encoder against a copy of itself differs by nothing, whatever the halves.
    copy = Features(features.table, FeaturesRecord(encoder=Maker("copy")))
    twice = compare(material_of(world, results=[results, evaluate(tasks, copy, ["knn"])]), intervals=["images"])
    (same,) = (
        pair
        for pair in twice.groups[0].pairs["acc", "images"]
        if all(name.endswith(": knn") for name in twice.pair_names(pair))
    )
    assert same.interval.mean == 0


def test_of_replicates_one_is_re_evaluated_and_widens_the_interval_of_all(world: World) -> None:
    catalog, features, tasks, results = world
    again = sample(catalog, "random", **SHAPE, tasks=40, seed=1)
    on_both = [results, evaluate(again, features, ["ncc", "knn"])]
    comparison = compare(material_of(world, results=on_both, tasks=[tasks]), intervals=["images"])
    means = means_on_halves(
        [tasks], catalog, [(comparison.encoders[0], features, ["ncc", "knn"])], "images", halvings=10
    )
    classifier = Classifier(comparison.encoders[0], "ncc")
    pooled = Estimate.over_tasks(np.concatenate([values_of(one, "ncc", "acc") for one in on_both]))
    expected = pooled.plus(means.spread({(tasks.digest, classifier, "acc"): 1.0})).interval("images")
    found = comparison.groups[0].rows[0].intervals["acc"]["images"]
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-8)


def test_the_number_of_workers_changes_nothing(world: World) -> None:
    one, two = (re_evaluated(world, "images", runtime=Runtime(workers=workers)) for workers in (1, 2))
    assert one.to_json() == two.to_json()


def test_data_too_small_for_halves_is_a_reason_and_the_others_still_come() -> None:
    catalog, features = make_world(classes=5)
    tasks = sample(catalog, "random", **SHAPE, tasks=30)
    small = catalog, features, tasks, evaluate(tasks, features, ["ncc"])
    comparison = re_evaluated(small, "sampler", "images", "classes")
    assert "halves of the classes need 6 classes" in comparison.refused["classes"]
    intervals = comparison.groups[0].rows[0].intervals["acc"]
    assert [name for name, one in intervals.items() if one.refused is None] == ["sampler", "images"]
    assert [row["low"] for row in comparison.to_json()["estimates"] if row["interval"] == "classes"] == [None, None]


def test_methods_on_items_are_not_evaluated_anew_which_is_a_reason(world: World) -> None:
    @dataclass(frozen=True)
    class First(ItemsMethod):
        about = "the first class, always"

        def predict(self, tasks: Sequence[ItemsTask], runtime: Runtime) -> list[IntArray]:
            return [np.zeros(len(task.query), dtype=np.int64) for task in tasks]

    on_items = evaluate(world[2], catalog=world[0], methods=First())
    comparison = compare(material_of(world, results=[on_items, world[3]]), intervals=["sampler", "images", "depletion"])
    rows = comparison.to_pandas()
    assert set(rows["classifier"]) == {"items: First", "features: ncc", "features: knn"}
    assert rows[(rows["interval"] == "sampler") & (rows["encoder"] == "features")]["low"].notna().all()
    told = rows[rows["interval"] != "sampler"]["refused"]
    assert set(told) == {"method 'First' works on the items and is not re-evaluated on other tasks"}


def biased_world() -> Inputs:
    """Random and FewSTAB tasks of 2 shots; two items of each class hold its word, which are seldom in one half."""
    catalog, _ = draw_data(items=26)
    number = {item: int(item[-3:]) for item in catalog.items}
    words = {item: [f"own {item[:7]}" if number[item] < 2 else f"other {number[item]}"] for item in catalog.items}
    attributes = Attributes.from_words(words)
    random = np.random.default_rng(0)
    labels = catalog.table.column("label").to_pylist()
    means = {label: random.normal(size=6) for label in sorted(set(labels))}
    values = np.stack([means[label] + random.normal(size=6) for label in labels])
    features = Features.from_array(list(catalog.items), values)
    plain = sample(catalog, "random", **SHAPE, tasks=40)
    biased = sample(catalog, "fewstab", attributes=attributes, **SHAPE, tasks=40)
    results = [evaluate(tasks, features, ["ncc", "knn"]) for tasks in (plain, biased)]
    return Inputs(results, [plain, biased], [catalog], [features], [attributes], halvings=6)


def test_a_set_too_small_for_halves_loses_that_interval_alone_with_the_reason_beside_it() -> None:
    inputs = biased_world()
    comparison = compare(inputs, intervals=["images", "sampler"], placebo=False)
    random, biased = comparison.groups
    (loss,) = comparison.blocks[0].losses
    for row in random.rows:
        assert row.first("acc").covers == "images"
    for group in (biased, loss.gap, loss.skill):
        for row in group.rows:
            refused = row.intervals["acc"]["images"].refused
            assert refused is not None
            assert refused.startswith("fewstab: half of the images ")
            assert row.intervals["acc"]["sampler"].refused is None
            assert row.first("acc").covers == "sampler"
    assert (comparison.refused, comparison.blocks[0].refused) == ({}, {})
    told = comparison.verdict()[1]
    assert "sampler intervals, valid for these images only" in told  # the gap has no other
    alone = compare(replace(inputs, results=inputs.results[:1]), intervals=["images", "sampler"])
    assert alone.groups[0].rows[0].intervals == random.rows[0].intervals  # what another set lacks changes nothing
    rows = comparison.to_pandas().query("tasks == 'fewstab' and interval == 'images'")
    assert rows["refused"].str.startswith("fewstab: half of the images").all()
    assert rows["low"].isna().all()


def test_images_come_first_where_the_material_is_there(world: World) -> None:
    comparison = compare(material_of(world))
    assert comparison.interval_names == ("images", "sampler")
    assert {row.first("acc").covers for row in comparison.groups[0].rows} == {"images"}
    for lacking in ("tasks", "catalogs", "features"):
        assert compare(material_of(world, **{lacking: []})).interval_names == ("sampler",)
    assert compare(world[3]).interval_names == ("sampler",)


@pytest.mark.parametrize("asked", [("sampler", "images"), ("classes", "images", "sampler"), ("depletion",)])
def test_the_intervals_that_are_asked_for_come_in_their_order_everywhere(world: World, asked: tuple[str, ...]) -> None:
    comparison = re_evaluated(world, *asked)
    assert comparison.interval_names == asked
    row = comparison.groups[0].rows[0]
    assert list(row.intervals["acc"]) == list(asked)
    assert row.first("acc").covers == asked[0]
    written = comparison.to_json()
    assert list(written["covers"]) == list(asked)
    first = written["estimates"][0]
    ranks = row.ranks["acc"][asked[0]]  # type: ignore[index]
    assert ranks is not None
    assert (first["interval"], first["rank_best"], first["rank_worst"]) == (asked[0], ranks.best, ranks.worst)
    assert list(dict.fromkeys(comparison.to_pandas()["interval"])) == list(asked)
    assert f"interval '{asked[0]}'" in comparison.to_latex()
    half = row.intervals["acc"][asked[0]].half_width  # type: ignore[index]
    assert f"±{half:.1f}" in comparison.to_html()


def test_an_unknown_interval_is_refused_before_anything_is_looked_at() -> None:
    with pytest.raises(InputError, match="unknown interval 'image'"):
        compare([], intervals=["images", "image"])


def test_two_data_sets_are_each_re_evaluated_on_their_own(world: World) -> None:
    catalog, features = make_world(classes=5, seed=3)
    tasks = sample(catalog, "random", **SHAPE, tasks=30)
    small = catalog, features, tasks, evaluate(tasks, features, ["ncc"])
    parts = [material_of(one) for one in (world, small)]
    joined = Inputs(
        **{
            name: [one for part in parts for one in getattr(part, name)]
            for name in ("results", "tasks", "catalogs", "features")
        },
        halvings=10,
    )
    comparison = compare(joined, intervals=["classes"])
    assert comparison.refused == {}
    given = {block.design.catalog: block.refused for block in comparison.blocks}
    assert given[world[0].digest] == {}
    assert "need 6 classes" in given[catalog.digest]["classes"]
    alone = re_evaluated(world, "classes").groups[0].rows[0]
    (same,) = (block for block in comparison.blocks if block.design.catalog == world[0].digest)
    assert same.groups[0].rows[0].intervals == alone.intervals


def test_depletion_of_biased_tasks_is_refused() -> None:
    comparison = compare(draw_results(draw_tasks("fewstab"), {"ncc": 0.5}), intervals=["depletion"])
    assert "only random tasks" in comparison.refused["depletion"]


def test_two_detectors_have_their_detection_accuracy_on_the_split() -> None:
    catalog, first = draw_data()
    features = Features.from_array(list(catalog.items), np.random.default_rng(0).normal(size=(len(catalog), 4)))
    words = first.to_words()
    second = Attributes.from_words({item: [*(held or [])[1:], "word11"] for item, held in words.items()})
    shape: dict[str, Any] = {"way": 3, "shot": 1, "query": 4, "tasks": 20}
    sets = [sample(catalog, "fewstab", attributes=one, **shape) for one in (first, second)]
    results = [evaluate(tasks, features, ["ncc", "knn"]) for tasks in sets]
    comparison = compare(Inputs(results, catalogs=[catalog], attributes=[second, first]))
    (agreement,) = comparison.blocks[0].detectors
    expected = []
    for found, truth in ((first, second), (second, first)):
        held = [(set(found.to_words()[item] or ()), set(true or ())) for item, true in truth.to_words().items()]
        expected.append(100 * np.mean([len(mine & true) / len(true) for mine, true in held if true]))
    assert agreement.accuracy == pytest.approx(tuple(expected))
    assert compare(results).blocks[0].detectors[0].accuracy is None


def test_material_of_other_results_is_refused(world: World) -> None:
    catalog, features, tasks, results = world
    _, other_features = make_world(seed=1)
    other_tasks = sample(catalog, "random", **SHAPE, tasks=60, seed=1)
    bigger, _ = make_world(classes=9)
    for changes, message in (
        ({"tasks": [other_tasks]}, f"{tasks.digest}, which was not given"),
        ({"features": [other_features]}, f"on features {features.digest}, which was not given"),
        ({"catalogs": [bigger]}, f"from catalog {catalog.digest}, .*{bigger.digest}"),
    ):
        with pytest.raises(Mismatch, match=message):
            compare(material_of(world, **changes), intervals=["images"])
    with pytest.raises(Mismatch, match=f"from catalog {catalog.digest}, .*{bigger.digest}"):
        compare(results, intervals=["depletion"], inputs=Inputs(catalogs=[bigger], features=[features]))


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
        ({"intervals": "image"}, "unknown interval 'image': did you mean 'images'?"),
        ({"intervals": []}, "name at least one of sampler, depletion, images, classes"),
        ({"intervals": ["images"]}, "no tasks and no catalogs and no features"),
        ({"intervals": ["depletion"]}, "no catalogs and no features"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        compare(draw_results(draw_tasks(), {"ncc": 0.5}), **options)


def test_attributes_are_asked_for_where_the_sampler_needs_them() -> None:
    biased = draw_results(draw_tasks("fewstab", detector="captions"), {"ncc": 0.5})
    with pytest.raises(InputError, match="and no attributes"):
        compare(biased, intervals=["classes"])


class Stubborn:
    """An estimator that always gives the first label."""

    def fit(self, rows: Any, labels: Any) -> None:
        self.first = min(labels)

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.first)


def test_methods_that_have_no_name_to_make_them_from_are_given(world: World) -> None:
    catalog, features, tasks, _ = world
    results = evaluate(tasks, features, ["ncc", Stubborn()])
    given: dict[str, Any] = {"results": [results], "catalogs": [catalog], "features": [features]}
    with pytest.raises(ShotproofError, match=r"method '.*Stubborn.*' of the results"):
        compare(Inputs(**given), intervals=["depletion"])
    comparison = compare(Inputs(**given, methods=[Stubborn()]), intervals=["depletion"])
    assert comparison.groups[0].pairs["acc", "depletion"][0].conclusion == "+"
