from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.analysis.compare import compare
from shotproof.analysis.inputs import Inputs
from shotproof.catalog.catalog import Catalog
from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.notes import notes_of_identical
from shotproof.core.records import MethodRecord
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.evaluated import Evaluated, evaluated_sets
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.worlds.shapes import ShapesWorld
from tests.drawn_results import draw_results, draw_tasks, values_of

ENCODERS = {"pixels": "pixels", "lite0": "lite0"}


def names_in(notes: list[str]) -> list[str]:
    """Return the names of the identical classifiers of each note, after what precedes them."""
    assert all("the same classifier" in note for note in notes)
    return [note.partition(" are right equally often")[0] for note in notes]


def with_copy(results: Results, name: str) -> Results:
    """The same counts under one more name."""
    rows = results.table.to_pylist()
    copied = [{**row, "method": name} for row in rows]
    record = replace(results.record, methods=(*results.record.methods, MethodRecord(name)))
    return Results(pa.Table.from_pylist(rows + copied), record)


def two_sets(*copied: str) -> list[Evaluated]:
    """Random and FewSTAB tasks; of the samplers named, `b` has the counts of `a`."""
    results = []
    for sampler in ("random", "fewstab"):
        tasks = draw_tasks(sampler)
        drawn = draw_results(tasks, {"a": 0.5})
        results.append(with_copy(drawn, "b") if sampler in copied else draw_results(tasks, {"a": 0.5, "b": 0.5}))
    return evaluated_sets(results)


def test_comparisons_say_so_design_by_design() -> None:
    first, second = (draw_results(draw_tasks(shot=shot), {"a": 0.5}) for shot in (1, 5))
    comparison = compare_sets(evaluated_sets([with_copy(first, "b"), with_copy(second, "c")]), ("sampler",))
    expected = ["3-way 1-shot: a on pixels and b on pixels", "3-way 5-shot: a on pixels and c on pixels"]
    assert names_in(comparison.notes) == expected


@pytest.mark.parametrize("shot", [1, 5])
def test_with_one_shot_knn_and_cosine_are_one(shot: int) -> None:
    catalog = ShapesWorld(classes=6, items=20).catalog()
    values = np.random.default_rng(0).normal(size=(len(catalog), 8))
    features = Features.from_array(catalog.items, values)
    tasks = sample(catalog, "random", tasks=30, shot=shot, query=5)
    sets = evaluated_sets([evaluate(tasks, features, ["knn", "ridge", "cosine"])])
    encoder = next(iter(sets[0].values)).encoder
    notes = notes_of_identical(sets, {encoder: "drawn"})
    assert names_in(notes) == (["knn on drawn and cosine on drawn"] if shot == 1 else [])


def test_on_all_task_sets_they_must_be_the_same() -> None:
    assert names_in(notes_of_identical(two_sets("random", "fewstab"), ENCODERS)) == ["a on pixels and b on pixels"]
    assert notes_of_identical(two_sets("random"), ENCODERS) == []
    assert notes_of_identical(two_sets("fewstab"), ENCODERS) == []


def test_who_was_evaluated_on_fewer_task_sets_is_not_the_same() -> None:
    random, fewstab = (draw_results(draw_tasks(sampler), {"a": 0.5}) for sampler in ("random", "fewstab"))
    assert notes_of_identical(evaluated_sets([with_copy(random, "b"), fewstab]), ENCODERS) == []


@given(st.integers(0, 59), st.booleans())
def test_one_answer_that_differs_is_enough(place: int, other_encoder: bool) -> None:
    tasks = draw_tasks()
    first = draw_results(tasks, {"a": 0.5})
    name = "lite0" if other_encoder else "pixels"
    rows = [{**row, "method": "b"} for row in first.table.to_pylist()]
    record = draw_results(tasks, {"b": 0.5}, name).record
    same = Results(pa.Table.from_pylist(rows), record)
    rows[place]["n_correct"] += 1 if rows[place]["n_correct"] == 0 else -1
    other = Results(pa.Table.from_pylist(rows), record)
    assert names_in(notes_of_identical(evaluated_sets([first, same]), ENCODERS)) == [f"a on pixels and b on {name}"]
    assert notes_of_identical(evaluated_sets([first, other]), ENCODERS) == []


def test_means_over_several_evaluations_count_too() -> None:
    tasks = draw_tasks()
    last = with_copy(draw_results(tasks, {"a": 0.5}, seed=1), "b")
    assert names_in(notes_of_identical(evaluated_sets([last]), ENCODERS)) == ["a on pixels and b on pixels"]
    first = draw_results(tasks, {"a": 0.5, "b": 0.5}, seed=0)
    assert notes_of_identical(evaluated_sets([first, last]), ENCODERS) == []


def notes(sizes: list[int], seed: int = 0) -> tuple[list[str], float]:
    """The notes on a world with classes of these sizes, the first half far apart, and by how much depletion differs."""
    random = np.random.default_rng(seed)
    far = np.arange(len(sizes)) < len(sizes) // 2
    means = random.normal(size=(len(sizes), 8)) * np.where(far, 3.0, 0.4)[:, None]
    names = [f"{c:03d}/{i:04d}" for c, size in enumerate(sizes) for i in range(size)]
    values = np.concatenate([means[c] + random.normal(size=(size, 8)) for c, size in enumerate(sizes)])
    columns = {"item": names, "path": names, "label": [name[:3] for name in names], "split": ["test"] * len(names)}
    catalog, features = Catalog(pa.table(columns)), Features.from_array(names, values)
    tasks = sample(catalog, "random", way=4, shot=2, query=5, tasks=300)
    results = evaluate(tasks, features, ["ncc", "cosine"])
    inputs = Inputs([results], [tasks], [catalog], [features])
    comparison = compare(inputs, intervals=["sampler", "depletion"])
    depleted = evaluate(sample(catalog, "depletion", way=4, shot=2, query=5), features, ["ncc", "cosine"])
    means_of = [
        np.mean([values_of(one, name, "acc").mean() for name in ("ncc", "cosine")]) for one in (depleted, results)
    ]
    return comparison.notes, float(means_of[0] - means_of[1])


def test_large_classes_that_are_easy_raise_the_open_mean_and_that_is_said() -> None:
    told, difference = notes([200] * 6 + [20] * 6)
    (note,) = (one for one in told if "Acc is" in one)
    found = re.search(r"Acc is ([0-9.]+) points higher .* ([+-][0-9.]+) points .*large classes", note)
    assert found is not None
    assert float(found[1]) == pytest.approx(difference, abs=0.051)
    # Random tasks use all classes alike, depletion the large ones: nearly all of the difference.
    assert 0.5 * difference < float(found[2]) < 1.5 * difference


def test_classes_of_one_size_are_no_reason() -> None:
    told, _ = notes([60] * 12)
    assert not any("large classes" in note for note in told)
