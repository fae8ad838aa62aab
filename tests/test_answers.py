from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shotproof.errors import Mismatch
from shotproof.evaluation.results import Results
from shotproof.report.answers import answers_on
from shotproof.tasks.taskset import TaskSet
from tests.report_files import make_catalog, make_experiment, make_results, make_tasks


def test_answers_follow_the_rows_of_the_task_set(tmp_path: Path) -> None:
    results, tasks, _ = make_experiment(tmp_path)
    shuffled = [
        Results(given.table.take(np.random.default_rng(0).permutation(given.table.num_rows)), given.meta)
        for given in results
    ]
    answers = answers_on(tasks[1], shuffled)
    classifiers = [(one.encoder, one.method) for one in answers]
    assert sorted(classifiers) == sorted((e, m) for e in ("pixels", "other encoder") for m in ("ncc", "ridge"))
    ncc = answers[classifiers.index(("pixels", "ncc"))]
    expected = [row for row in results[2].table.to_pylist() if row["method"] == "ncc"]
    assert ncc.share.tolist() == [row["n_correct"] / row["n_query"] for row in expected]
    assert [ncc.missed_at(row) for row in range(len(expected))] == [row["missed"] for row in expected]


def test_missed_may_be_missing(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    (answers,) = answers_on(tasks, [Results(results.table.drop_columns("missed"), results.meta)])
    assert answers.missed_at(0) is None


def test_the_same_tasks_of_another_catalog_have_other_answers(tmp_path: Path) -> None:
    made = make_tasks(make_catalog(tmp_path))
    tasks = [TaskSet(made.table, {**made.meta, "from": {"catalog": name}}) for name in ("quiet", "loud")]
    results = [make_results(one, "pixels", {"ncc": share}) for one, share in zip(tasks, (1.0, 0.0), strict=True)]
    assert [answers_on(one, results)[0].share.mean() for one in tasks] == [1.0, 0.0]
    assert answers_on(TaskSet(made.table, {}), results[1:])[0].share.mean() == 0.0


def test_tasks_of_other_results_are_refused(tmp_path: Path) -> None:
    catalog = make_catalog(tmp_path)
    tasks, others = make_tasks(catalog), make_tasks(catalog, seed=1)
    with pytest.raises(Mismatch, match=f"{others.digest}.*{tasks.digest}"):
        answers_on(others, [make_results(tasks, "pixels", {"ncc": 0.5})])


def test_results_that_lie_about_their_tasks_are_refused(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    results = make_results(tasks, "pixels", {"ncc": 0.5})
    with pytest.raises(Mismatch, match="other tasks and slots"):
        answers_on(tasks, [Results(results.table.slice(3), results.meta)])
