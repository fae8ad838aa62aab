from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.svm import SVC

from shotproof.analysis.inputs import Inputs
from shotproof.analysis.reevaluation.halvings import affordable_halvings, means_on_halves
from shotproof.analysis.reevaluation.repeated import RepeatedClassifiers
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.core.records import Maker
from shotproof.core.runtime.runtime import Runtime
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.evaluated import Classifier
from shotproof.stats.halves import HalvedMeans
from shotproof.stats.intervals import Estimate
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet

DESIGN: dict[str, Any] = {"way": 3, "shot": 1, "query": 4, "tasks": 60}
Data = tuple[Catalog, Attributes]


def features_for(catalog: Catalog, d: int = 6, seed: int = 0) -> Features:
    random = np.random.default_rng(seed)
    labels = catalog.table.column("label").to_pylist()
    means = {label: random.normal(size=d) for label in sorted(set(labels))}
    return Features.from_array(
        list(catalog.items), np.stack([means[label] + random.normal(size=d) for label in labels])
    )


def on_halves(task_set: TaskSet, catalog: Catalog, units: Any, **options: Any) -> HalvedMeans:
    """Nearest centroid on halves."""
    return means_on_halves([task_set], catalog, [("drawn", features_for(catalog), ["ncc"])], units, **options)


def test_random_and_biased_sets_on_the_same_halves_in_any_number_of_processes(data: Data) -> None:
    catalog, attributes = data
    sets = [sample(catalog, "random", **DESIGN), sample(catalog, "fewstab", attributes=attributes, **DESIGN)]
    classifiers = [("drawn", features_for(catalog), ["ncc", "knn"])]
    options: dict[str, Any] = {"inputs": Inputs(attributes=[attributes]), "halvings": 12, "tasks": 10}
    alone, shared = (
        means_on_halves(sets, catalog, classifiers, "images", runtime=Runtime(workers=workers), **options)
        for workers in (1, 2)
    )
    ncc, knn = Classifier("drawn", "ncc"), Classifier("drawn", "knn")
    first, second = (tasks.digest for tasks in sets)
    assert alone.names[:3] == [(first, ncc, "acc"), (first, ncc, "wacc"), (first, knn, "acc")]
    assert alone.halves.difference.values.shape == (12, 8)
    np.testing.assert_array_equal(alone.halves.difference.values, shared.halves.difference.values)
    np.testing.assert_array_equal(alone.halves.mean.noise, shared.halves.mean.noise)
    assert alone.spread({(first, ncc, "wacc"): 1, (second, ncc, "wacc"): -1}).uncertainty > 0
    other = means_on_halves(sets, catalog, classifiers, "images", seed=1, **options)
    assert not np.array_equal(alone.halves.difference.values, other.halves.difference.values)


@pytest.mark.parametrize("units", ["images", "classes"])
def test_halves_are_balanced_and_of_the_units(data: Data, units: str) -> None:
    catalog, _ = data
    halves = on_halves(sample(catalog, "random", **DESIGN), catalog, units, halvings=6, tasks=5).halves
    if units == "classes":
        assert halves.freedom == 7
        assert halves.sides is not None
        np.testing.assert_array_equal(halves.sides.sum(axis=1), 0)
    else:
        assert (halves.freedom, halves.sides) == (8 * 39, None)


def test_items_of_one_source_stay_together(make_data: Callable[..., Data]) -> None:
    catalog, _ = make_data(source_of=2)
    means = on_halves(sample(catalog, "random", **DESIGN), catalog, "images", halvings=2, tasks=3)
    assert means.halves.freedom == 8 * (20 - 1)


def test_depletion_sets_use_as_many_tasks_as_a_half_gives(data: Data) -> None:
    catalog, _ = data
    tasks = sample(catalog, "depletion", way=3, shot=1, query=4)
    means = on_halves(tasks, catalog, "images", halvings=3, tasks=500)
    assert np.isfinite(means.halves.difference.noise).all()


def test_intervals_are_wider_the_more_is_drawn_again(data: Data) -> None:
    catalog, _ = data
    tasks = sample(catalog, "random", **{**DESIGN, "tasks": 400})
    values = evaluate(tasks, features_for(catalog), ["ncc"]).counts("ncc").accuracy_by_task()
    widths = [Estimate.over_tasks(values).interval().half_width]
    for units in ("images", "classes"):
        means = on_halves(tasks, catalog, units, halvings=30, tasks=40)
        added = means.spread({(tasks.digest, Classifier("drawn", "ncc"), "acc"): 1})
        widths.append(Estimate.over_tasks(values).plus(added).interval().half_width)
    assert widths == sorted(widths)


def test_data_too_small_for_halves_is_refused_with_the_reason(make_data: Callable[..., Data]) -> None:
    catalog, _ = make_data(classes=5, items=40)
    with pytest.raises(InsufficientData, match=r"need 6 classes \(3 ways .*the data has 5"):
        on_halves(sample(catalog, "random", **DESIGN), catalog, "classes", halvings=3, tasks=5)
    few, _ = make_data(items=9)
    with pytest.raises(InsufficientData, match=r"halves of the images need 10 of each class .* class 'class00' has 9"):
        on_halves(sample(few, "random", **DESIGN), few, "images")


def test_recordings_are_not_called_images(make_data: Callable[..., Data]) -> None:
    few, _ = make_data(items=9)
    paths = pa.array([f"{item}.wav" for item in few.items])
    sounds = Catalog(few.table.set_column(few.table.column_names.index("path"), "path", paths), few.root, few.record)
    with pytest.raises(InsufficientData, match="halves of the recordings need 10 of each class"):
        on_halves(sample(sounds, "random", **DESIGN), sounds, "images")


def test_bad_input_is_named(data: Data, make_data: Callable[..., Data]) -> None:
    catalog, attributes = data
    features, tasks = features_for(catalog), sample(catalog, "random", **DESIGN)
    with pytest.raises(InputError, match=r"does not record how .*drawn"):
        on_halves(TaskSet(tasks.table), catalog, "images")
    gone = replace(tasks.record, sampler=Maker("hardest", "hardest(rounds=2)", {"rounds": 2}))
    with pytest.raises(Mismatch, match=r"hardest\(rounds=2\) tasks were drawn by another version.*no option 'rounds'"):
        on_halves(TaskSet(tasks.table, gone), catalog, "images")
    other, _ = make_data(seed=5, classes=9)
    with pytest.raises(Mismatch, match=f"not from {other.digest}"):
        means_on_halves([tasks], other, [("drawn", features, ["ncc"])], "images")
    biased = sample(catalog, "fewstab", attributes=attributes, **DESIGN)
    with pytest.raises(Mismatch, match=f"drawn with the attributes {attributes.digest}.*available: none"):
        on_halves(biased, catalog, "images")
    lacking = Features(features.table.filter(pa.array([False] + [True] * (len(features) - 1))))
    with pytest.raises(Mismatch, match="the features lack"):
        means_on_halves([tasks], catalog, [("drawn", lacking, ["ncc"])], "images", halvings=2)


def test_a_set_whose_features_are_not_there_is_refused_and_the_others_are_not(data: Data) -> None:
    catalog, _ = data
    features, tasks = features_for(catalog), sample(catalog, "random", **DESIGN)
    searched = sample(catalog, "hardest", like=tasks, features=features_for(catalog, seed=1), **DESIGN)
    found = means_on_halves(
        [tasks, searched],
        catalog,
        [("drawn", features, ["ncc"])],
        "images",
        halvings=2,
        inputs=Inputs(tasks=[tasks], features=[features]),
    )
    assert {digest for digest, *_ in found.names} == {tasks.digest}  # type: ignore[misc]
    assert "tasks were drawn with the features" in found.refused[searched.digest]
    gone = replace(tasks.record, sampler=Maker("semantic", "semantic", {"class_distances": "gone.csv"}))
    lacking = TaskSet(searched.table, gone)
    found = means_on_halves([tasks, lacking], catalog, [("drawn", features, ["ncc"])], "images", halvings=2)
    assert "the semantic tasks were drawn with the file gone.csv" in found.refused[lacking.digest]


def test_halvings_are_fewer_for_an_estimator_that_is_asked_task_by_task(data: Data) -> None:
    catalog, _ = data
    costs = [
        RepeatedClassifiers.of([("drawn", features_for(catalog), methods)], catalog.items, 0).task_cost
        for methods in (["ncc", "ridge"], ["ncc", SVC(C=10)])
    ]
    in_batches, task_by_task = (affordable_halvings(2 * 200 * 3 * cost) for cost in costs)
    assert in_batches == 50
    assert task_by_task == 20
    assert affordable_halvings(1) == 100
