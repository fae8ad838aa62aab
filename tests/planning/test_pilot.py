"""A pilot's arrays, from results."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shotproof.core.errors import InputError, UnknownName
from shotproof.core.records import ResultsRecord, TasksRecord
from shotproof.planning.pilot import Pilot
from shotproof.planning.task_plan import estimate_moments
from shotproof.results.results import Results


def results_of(right: dict[str, np.ndarray], missed: bool = True) -> Results:
    """Results from which queries each method got right, [tasks, way, query]; rows 1, 2, ... shuffled."""
    rows = [
        {
            **{"method": method, "task": t, "slot": c, "label": f"class{c}"},
            **{"n_query": len(row), "n_correct": int(row.sum())},
            **({"missed": np.flatnonzero(~row).tolist()} if missed else {}),
        }
        for method, answers in right.items()
        for t, task in enumerate(answers)
        for c, row in enumerate(task)
    ]
    order = np.random.default_rng(0).permutation(len(rows) - 1) + 1
    return Results(pa.Table.from_pylist([rows[i] for i in (0, *order)]))


def answers(tasks: int = 60, way: int = 3, query: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    hard = rng.random((tasks, way, query))
    return {"a": hard < 0.7 + 0.1 * rng.normal(size=(tasks, way, 1)), "b": hard < 0.6}


def test_moments_are_those_of_the_counts() -> None:
    right = answers()
    pilot = Pilot.of(results_of(right))
    assert (pilot.tasks, pilot.way, pilot.query) == (60, 3, 6)
    assert pilot.moments("b") == estimate_moments(right["b"].sum(axis=2), np.full((60, 3), 6))
    with pytest.raises(UnknownName, match="unknown method of these results 'c'"):
        pilot.moments("c")


def test_the_paired_difference_at_the_pilots_queries_needs_counts_alone() -> None:
    right = answers()
    sample = (100 * (right["a"].mean(axis=(1, 2)) - right["b"].mean(axis=(1, 2)))).var(ddof=1)
    for missed in (True, False):
        pilot = Pilot.of(results_of(right, missed))
        assert pilot.difference_variance("a", "b", 6) == pytest.approx(sample)
    assert pilot.difference_variance("a", "b", 3) is None


def test_the_paired_difference_at_other_queries_uses_which_were_missed() -> None:
    right = answers(tasks=8000)
    pilot = Pilot.of(results_of({method: values[..., :3] for method, values in right.items()}))
    difference = 100 * (right["a"].mean(axis=(1, 2)) - right["b"].mean(axis=(1, 2)))
    assert pilot.difference_variance("a", "b", 6) == pytest.approx(difference.var(ddof=1), rel=0.06)


def test_what_the_record_says_of_the_tasks() -> None:
    table = results_of(answers()).table
    assert Pilot.of(Results(table, ResultsRecord(tasks=TasksRecord(shot=5)))).origin.design.shot == 5
    for meta in ({}, {"tasks": None}, {"tasks": {"made_by": None}}):
        assert Pilot.of(Results(table, ResultsRecord.read(meta))).origin.design.shot is None


def test_tasks_of_several_shapes_are_refused() -> None:
    table = results_of({"b": answers()["b"]}).table
    with pytest.raises(InputError, match="way in all tasks, found 2 to 3"):
        Pilot.of(Results(table.slice(1)))
    queries = table.column("n_query").to_numpy().copy()
    queries[:10] = 7
    table = table.drop_columns(["missed"]).set_column(4, "n_query", pa.array(queries))
    with pytest.raises(InputError, match="number of queries in all tasks, found 6 to 7"):
        Pilot.of(Results(table))


def test_methods_on_different_tasks_are_refused() -> None:
    right = answers()
    with pytest.raises(InputError, match=r"methods 'a' and 'b' .*same tasks"):
        Pilot.of(results_of({"a": right["a"], "b": right["b"][:50]}))


def test_the_interval_of_the_best_number_covers_it() -> None:
    """Class accuracies are beta with a part that the classes of a task share, so that the moments are known."""
    rng = np.random.default_rng(5)
    task = rng.normal(0, 0.08, (40, 200, 1, 1))
    mu = np.clip(0.6 + task + rng.normal(0, 0.1, (40, 200, 5, 1)), 0, 1)
    alpha = 0.08**2 + 0.1**2 / 5
    noise = (0.6 - (0.6**2 + 0.08**2 + 0.1**2)) / 5
    truth = np.sqrt(5 * noise / alpha)
    covered = 0
    for right in rng.random((40, 200, 5, 8)) < mu:
        found = Pilot.of(results_of({"a": right}, missed=False)).best_query_interval("a", shot=5)
        assert found is not None
        covered += found[0] <= truth <= found[1]
    assert covered >= 34  # of 40; 38 are expected
