from __future__ import annotations

from pathlib import Path

import numpy as np

from shotproof.analysis.chosen_tasks import choose_tasks
from shotproof.evaluation.answers import answers_on
from tests.report_files import make_catalog, make_results, make_tasks


def test_tasks_are_spaced_from_hardest_to_easiest(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path), tasks=25)
    results = make_results(tasks, "pixels", {"ncc": 0.7, "ridge": 0.5})
    answered = answers_on(tasks, [results])
    shares: dict[int, list[float]] = {}
    for row in results.table.to_pylist():
        shares.setdefault(row["task"], []).append(100 * row["n_correct"] / row["n_query"])
    means = {task: float(np.mean(values)) for task, values in shares.items()}
    order = sorted(means, key=lambda task: (round(means[task], 9), task))
    chosen = choose_tasks(answered, 5)
    assert [(one.rank, one.position) for one in chosen] == [(rank + 1, order[rank]) for rank in (0, 6, 12, 18, 24)]
    np.testing.assert_allclose([one.accuracy for one in chosen], [means[one.position] for one in chosen])
    assert [(one.rank, one.position) for one in choose_tasks(answered, 1)] == [(13, order[12])]
    assert len(choose_tasks(answered, 99)) == 25


def test_the_rows_of_a_task_are_those_of_the_file(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path), tasks=4)
    for one in choose_tasks(answers_on(tasks, [make_results(tasks, "pixels", {"ncc": 0.5})]), 4):
        assert set(tasks.task_of_row[list(one.rows)]) == {one.position}
        assert len(one.rows) == 3
