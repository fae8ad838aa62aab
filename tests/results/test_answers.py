from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shotproof.core.errors import Mismatch
from shotproof.core.records import Source
from shotproof.results.answers import answers_on
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def test_answers_follow_the_rows_of_the_task_set(tmp_path: Path) -> None:
    results, tasks, _ = make_experiment(tmp_path)
    shuffled = [
        Results(result.table.take(np.random.default_rng(0).permutation(result.table.num_rows)), result.record)
        for result in results
    ]
    answers = answers_on(tasks[1], shuffled).answers
    classifiers = [answer.classifier for answer in answers]
    assert sorted(classifiers) == sorted((e, m) for e in ("pixels", "other encoder") for m in ("ncc", "ridge"))
    ncc = answers[classifiers.index(("pixels", "ncc"))]  # type: ignore[arg-type]
    expected = [row for row in results[2].table.to_pylist() if row["method"] == "ncc"]
    assert ncc.counts.accuracy().tolist() == [100 * row["n_correct"] / row["n_query"] for row in expected]
    assert [ncc.missed_at(row) for row in range(len(expected))] == [row["missed"] for row in expected]


def test_accuracies_are_means_over_classifiers(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path), tasks=5)
    results = make_results(tasks, "pixels", {"ncc": 0.3, "ridge": 0.8})
    answered = answers_on(tasks, [results])
    shares: dict[tuple[int, int], list[float]] = {}
    for row in results.table.to_pylist():
        shares.setdefault((row["task"], row["slot"]), []).append(100 * row["n_correct"] / row["n_query"])
    by_row = [np.mean(values) for values in shares.values()]
    np.testing.assert_allclose(answered.accuracy_by_row(), by_row)
    np.testing.assert_allclose(answered.accuracy_by_task(), np.reshape(by_row, (5, 3)).mean(axis=1))


def test_missed_may_be_missing(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    (answers,) = answers_on(tasks, [Results(results.table.drop_columns("missed"), results.record)]).answers
    assert answers.missed_at(0) is None


def test_the_same_tasks_of_another_catalog_have_other_answers(tmp_path: Path) -> None:
    made = make_tasks(make_catalog(tmp_path))
    tasks = [TaskSet(made.table, replace(made.record, sources={"catalog": Source(name)})) for name in ("quiet", "loud")]
    results = [make_results(task, "pixels", {"ncc": share}) for task, share in zip(tasks, (1.0, 0.0), strict=True)]
    assert [answers_on(task, results).accuracy_by_task().mean() for task in tasks] == [100.0, 0.0]
    assert answers_on(TaskSet(made.table), results[1:]).accuracy_by_task().mean() == 0.0


def test_tasks_of_other_results_are_refused(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks, others = make_tasks(catalog), make_tasks(catalog, seed=1)
    with pytest.raises(Mismatch, match=f"{others.digest}.*{tasks.digest}"):
        answers_on(others, [make_results(tasks, "pixels", {"ncc": 0.5})])


def test_results_that_lie_about_their_tasks_are_refused(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    with pytest.raises(Mismatch, match="other tasks and slots"):
        answers_on(tasks, [Results(results.table.slice(3), results.record)])
