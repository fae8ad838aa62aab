"""Results that cannot be true on their tasks are found, with the first task that tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shotproof.analysis.verification.results_check import Recomputation, results_problems
from shotproof.core.errors import InputError
from shotproof.core.records import Source
from shotproof.evaluation.evaluate import evaluate
from shotproof.features.features import Features
from shotproof.results.results import Results
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from shotproof.worlds.gaussian import GaussianWorld


@pytest.fixture(scope="module")
def drawn() -> tuple[TaskSet, Features, Results]:
    catalog, features, _ = GaussianWorld().draw(classes=6, items=40)
    tasks = sample(catalog, "random", way=3, query=4, tasks=20)
    return tasks, features, evaluate(tasks, features, ["ncc", "ridge"], seed=3)


def with_column(results: Results, name: str, values: pa.Array) -> Results:
    table = results.table.select(
        [column_name for column_name in results.table.column_names if column_name not in ("missed", "answered")]
    )
    return Results(table.set_column(table.column_names.index(name), name, values), results.record)


def one_more_correct(results: Results, row: int) -> Results:
    """With one more query correct, or one fewer where all are."""
    correct, queries = (results.table.column(name).to_numpy().copy() for name in ("n_correct", "n_query"))
    correct[row] += 1 if correct[row] < queries[row] else -1
    return with_column(results, "n_correct", pa.array(correct))


def test_what_was_evaluated_is_true(drawn: tuple[TaskSet, Features, Results]) -> None:
    tasks, features, results = drawn
    assert list(results_problems(results, [tasks], Recomputation(features))) == []


def test_the_first_task_that_comes_out_otherwise_is_named(drawn: tuple[TaskSet, Features, Results]) -> None:
    tasks, features, results = drawn
    lie = one_more_correct(one_more_correct(results, 3 * 7 + 1), 3 * 12)
    assert list(results_problems(lie, [tasks])) == []  # it is possible
    (told,) = results_problems(lie, [tasks], Recomputation(features))
    row = lie.table.slice(3 * 7 + 1, 1).to_pylist()[0]
    was = results.table.column("n_correct")[3 * 7 + 1].as_py()
    said = f"task 7, class '{row['label']}': {row['n_correct']} of 4 correct, recomputed {was}"
    assert told == f"method 'ncc': {said}; 2 of 20 tasks differ"


def test_a_sample_has_its_own_tasks_and_finds_what_is_among_them(drawn: tuple[TaskSet, Features, Results]) -> None:
    tasks, features, results = drawn
    how = Recomputation(features, sample=5)
    chosen = np.unique(how.chosen(tasks).task_of_row)
    assert len(chosen) == 5
    assert not np.array_equal(chosen, np.unique(replace(how, seed=1).chosen(tasks).task_of_row))
    outside = next(task for task in range(20) if task not in chosen)
    for task, expected in ((int(chosen[2]), 1), (outside, 0)):
        assert len(list(results_problems(one_more_correct(results, 3 * task), [tasks], how))) == expected
    with pytest.raises(InputError, match=r"sample: expected .* above 0"):
        Recomputation(features, sample=0)


LIES: dict[str, tuple[Callable[[Results], Results], str]] = {
    "a task is missing": (
        lambda one: Results(one.table.filter(pc.not_equal(one.table.column("task"), 4)), one.record),
        "method 'ncc': 1 of 20 tasks are missing, the first is task 4",
    ),
    "a task that there is not": (
        lambda one: Results(
            pa.concat_tables([one.table, one.table.slice(0, 1).set_column(1, "task", pa.array([99], pa.int32()))]),
            one.record,
        ),
        "method 'ncc': task 99 is not in the task set",
    ),
    "a class is missing": (
        lambda one: Results(one.table.slice(1), one.record),
        "method 'ncc': task 0 has other classes than in the task set",
    ),
    "another class": (
        lambda one: with_column(one, "label", pa.array(["wren", *one.table.column("label").to_pylist()[1:]])),
        "method 'ncc': task 0, slot 0: expected label '",
    ),
    "more queries": (
        lambda one: with_column(one, "n_query", pa.array([9, *one.table.column("n_query").to_pylist()[1:]])),
        "method 'ncc': task 0, slot 0: expected n_query 4, found 9",
    ),
    "another task set": (
        lambda one: Results(one.table, replace(one.record, sources={"tasks": Source("another digest")})),
        "the results are on task set another digest, ",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_results_that_are_not_on_their_tasks_are_found(drawn: tuple[TaskSet, Features, Results], lie: str) -> None:
    tasks, features, results = drawn
    change, expected = LIES[lie]
    told = list(results_problems(change(results), [tasks], Recomputation(features)))
    assert told[0].startswith(expected)


@pytest.mark.parametrize("correct", [-1, 16])
def test_counts_that_cannot_be_are_refused_when_they_are_read(correct: int) -> None:
    columns = {"method": ["ncc"] * 2, "task": [0, 0], "slot": [0, 1], "label": ["wren", "owl"], "n_query": [15, 15]}
    with pytest.raises(InputError, match=f"n_query, found {correct} of 15: method 'ncc', task 0, class 'owl'"):
        Results(pa.table({**columns, "n_correct": [12, correct]}))
