from __future__ import annotations

from collections import Counter
from pathlib import Path

from shotproof.analysis.exploration.confusion import confusion
from shotproof.analysis.exploration.explored_tasks import explored_tasks
from shotproof.evaluation.answers import answers_on
from shotproof.evaluation.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.report_files import make_catalog, make_results, make_tasks


def counted(tasks: TaskSet, results: Results) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Confused and asked queries by pair of classes, in a loop over rows."""
    labels: dict[int, list[str]] = {}
    for row in tasks.table.to_pylist():
        labels.setdefault(row["task"], []).append(row["label"])
    times: Counter[tuple[str, str]] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    for row in results.table.to_pylist():
        for other in labels[row["task"]]:
            asked[row["label"], other] += row["n_query"]
        for slot in row["answered"]:
            if slot >= 0:
                times[row["label"], labels[row["task"]][slot]] += 1
    return times, asked


def test_pairs_are_those_of_a_loop_over_answers(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    given = make_results(tasks, "pixels", {"ncc": 0.4})
    rows = given.table.to_pylist()
    for row in rows[::5]:
        row["answered"] = [-1] * len(row["answered"])  # no class was named
    results = Results(type(given.table).from_pylist(rows), given.record)
    explored = explored_tasks(answers_on(tasks, [results]), None, None)
    found = confusion(explored, explored.answers[0], 100)
    assert found is not None
    names = explored.label.names
    pairs = [(names[truth], names[answer]) for truth, answer in zip(found.truth, found.answer, strict=True)]
    times, asked = counted(tasks, results)
    assert dict(zip(pairs, found.times.tolist(), strict=True)) == times
    assert dict(zip(pairs, found.of.tolist(), strict=True)) == {pair: asked[pair] for pair in times}
    assert found.times.tolist() == sorted(found.times.tolist(), reverse=True)
    few = confusion(explored, explored.answers[0], 3)
    assert few is not None
    assert few.times.tolist() == found.times.tolist()[:3]
    assert few.of.tolist() == found.of.tolist()[:3]


def test_results_that_do_not_tell_the_answers_tell_no_confusion(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    given = make_results(tasks, "pixels", {"ncc": 0.4})
    explored = explored_tasks(
        answers_on(tasks, [Results(given.table.drop_columns("answered"), given.record)]), None, None
    )
    assert confusion(explored, explored.answers[0], 100) is None


def test_a_classifier_that_is_always_right_confuses_nothing(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path))
    explored = explored_tasks(answers_on(tasks, [make_results(tasks, "pixels", {"ncc": 1.0})]), None, None)
    found = confusion(explored, explored.answers[0], 100)
    assert found is not None
    assert found.of.tolist() == []
