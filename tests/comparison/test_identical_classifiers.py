"""Classifiers that are right equally often everywhere are said to be one; those that differ once are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shotproof.comparison.compare_sets import compare_sets
from shotproof.comparison.identical_classifiers import notes_of_identical
from shotproof.core.records import MethodRecord
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.evaluated import Evaluated, evaluated_sets
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.worlds.shapes import ShapesWorld
from tests.drawn_results import draw_results, draw_tasks

ENCODERS = {"pixels": "pixels", "lite0": "lite0"}


def told(*names: str) -> str:
    return f"{' and '.join(names)} are right equally often in every class of every task: they are one classifier here"


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
    assert comparison.notes == [
        f"3-way 1-shot: {told('a on pixels', 'b on pixels')}",
        f"3-way 5-shot: {told('a on pixels', 'c on pixels')}",
    ]


@pytest.mark.parametrize("shot", [1, 5])
def test_with_one_shot_knn_and_cosine_are_one(shot: int) -> None:
    catalog = ShapesWorld(classes=6, items=20).catalog()
    values = np.random.default_rng(0).normal(size=(len(catalog), 8))
    features = Features.from_array(catalog.items, values)
    tasks = sample(catalog, "random", tasks=30, shot=shot, query=5)
    sets = evaluated_sets([evaluate(tasks, features, ["knn", "ridge", "cosine"])])
    encoder = next(iter(sets[0].values)).encoder
    notes = notes_of_identical(sets, {encoder: "drawn"})
    assert notes == ([told("knn on drawn", "cosine on drawn")] if shot == 1 else [])


def test_on_all_task_sets_they_must_be_the_same() -> None:
    assert notes_of_identical(two_sets("random", "fewstab"), ENCODERS) == [told("a on pixels", "b on pixels")]
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
    assert notes_of_identical(evaluated_sets([first, same]), ENCODERS) == [told("a on pixels", f"b on {name}")]
    assert notes_of_identical(evaluated_sets([first, other]), ENCODERS) == []


def test_means_over_several_evaluations_count_too() -> None:
    tasks = draw_tasks()
    last = with_copy(draw_results(tasks, {"a": 0.5}, seed=1), "b")
    assert notes_of_identical(evaluated_sets([last]), ENCODERS) == [told("a on pixels", "b on pixels")]
    first = draw_results(tasks, {"a": 0.5, "b": 0.5}, seed=0)
    assert notes_of_identical(evaluated_sets([first, last]), ENCODERS) == []
