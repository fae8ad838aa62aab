from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shotproof.analysis.explanation.mismatch import expected_mismatch
from shotproof.analysis.explored_tasks import (
    NONE,
    ExploredTasks,
    Lure,
    Reasons,
    choose_tasks,
    confusion,
    explored_tasks,
    reasons_of,
)
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.results.answers import answers_on
from shotproof.results.results import Results
from shotproof.tasks.taskset import TaskSet
from tests.report_files import make_catalog, make_results, make_tasks


def explored(folder: Path, catalog: Catalog | None, attributes: Attributes | None = None) -> ExploredTasks:
    tasks = make_tasks(make_catalog(folder), shot=2)
    return explored_tasks(answers_on(tasks, [make_results(tasks, "pixels", {"a": 0.5, "b": 0.8})]), catalog, attributes)


def in_contexts(folder: Path) -> tuple[Catalog, dict[str, str | None]]:
    catalog = make_catalog(folder)
    contexts = [("rain", "sun", None)[row % 3] for row in range(len(catalog))]
    table = catalog.table.append_column("context", pa.array(contexts, pa.string()))
    return Catalog(table, folder), dict(zip(catalog.items, contexts, strict=True))


def test_arrays_hold_what_the_table_holds(tmp_path: Path) -> None:
    catalog, contexts = in_contexts(tmp_path)
    found = explored(tmp_path, catalog)
    table = make_tasks(make_catalog(tmp_path), shot=2).table.to_pylist()
    for name, side in (("support", found.support), ("query", found.query)):
        lists = [found.items.take(pa.array(codes)).to_pylist() for codes in np.split(side.items, side.ends[1:-1])]
        assert lists == [row[name] for row in table]
    assert [found.label.names[code] for code in found.label.codes] == [row["label"] for row in table]
    assert [found.planted.names[code] for code in found.planted.codes] == [row["attribute"] for row in table]
    assert [catalog.items[row] for row in found.row] == found.items.to_pylist()
    known = [None if code == NONE else found.context.names[code] for code in found.context.codes]
    assert known == [contexts[item] for item in found.items.to_pylist()]


def test_a_context_is_told_where_all_items_of_a_side_share_it(tmp_path: Path) -> None:
    catalog, contexts = in_contexts(tmp_path)
    found = explored(tmp_path, catalog)
    expected = []
    for row in make_tasks(make_catalog(tmp_path), shot=2).table.to_pylist():
        own = {contexts[item] for item in row["support"]}
        expected.append(own.pop() if len(own) == 1 else None)
    codes = found.common_context(found.support)
    assert [None if code == NONE else found.context.names[code] for code in codes] == expected
    assert any(expected)


def test_a_class_without_queries_has_no_context(tmp_path: Path) -> None:
    catalog, _ = in_contexts(tmp_path)
    tasks = make_tasks(make_catalog(tmp_path))
    emptied = [row | {"query": [] if row["slot"] == 2 else row["query"][:1]} for row in tasks.table.to_pylist()]
    changed = TaskSet(pa.Table.from_pylist(emptied, tasks.table.schema), tasks.record)
    found = explored_tasks(answers_on(changed, [make_results(changed, "pixels", {"a": 0.5})]), catalog, None)
    assert (found.common_context(found.query)[2::3] == NONE).all()
    assert (found.common_context(found.query) != NONE).any()


def test_the_hardest_task_has_rank_1(tmp_path: Path) -> None:
    found = explored(tmp_path, None)
    assert sorted(found.rank) == list(range(1, len(found) + 1))
    np.testing.assert_allclose(found.accuracy[np.argsort(found.rank)], np.sort(found.accuracy))


def test_without_a_catalog_and_with_attributes_of_other_items_the_tasks_are_still_there(tmp_path: Path) -> None:
    found = explored(tmp_path, None, Attributes.from_words({"another": ["red"]}))
    assert (found.row == NONE).all()
    assert found.context.names == []
    assert found.held_words is None


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
    assert [(choose_task.rank, choose_task.position) for choose_task in choose_tasks(answered, 1)] == [(13, order[12])]
    assert len(choose_tasks(answered, 99)) == 25


def test_the_rows_of_a_task_are_those_of_the_file(tmp_path: Path) -> None:
    tasks = make_tasks(make_catalog(tmp_path), tasks=4)
    for choose_task in choose_tasks(answers_on(tasks, [make_results(tasks, "pixels", {"ncc": 0.5})]), 4):
        assert set(tasks.task_of_row[list(choose_task.rows)]) == {choose_task.position}
        assert len(choose_task.rows) == 3


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


QUERIES = [f"wren query {number}" for number in range(4)], [f"owl query {number}" for number in range(4)]


def one_task(words: dict[str, list[str] | None], contexts: dict[str, str] | None = None) -> ExploredTasks:
    """Two classes with one support item and four queries each; green and snow are planted."""
    rows = {
        "task": [0, 0],
        "slot": [0, 1],
        "label": ["wren", "owl"],
        "attribute": ["green", "snow"],
        "support": [["wren"], ["owl"]],
        "query": list(QUERIES),
    }
    items = ["wren", "owl", *QUERIES[0], *QUERIES[1]]
    tasks = TaskSet(pa.table(rows))
    columns = {"item": items, "path": items, "label": ["bird"] * 10, "split": ["test"] * 10}
    columns["context"] = [(contexts or {}).get(item, "") for item in items]
    known = Attributes.from_words({item: words.get(item, []) for item in items})
    answered = answers_on(tasks, [make_results(tasks, "pixels", {"ncc": 0.5})])
    return explored_tasks(answered, Catalog(pa.table(columns)), known)


def reasons(tasks: ExploredTasks) -> list[Reasons]:
    return reasons_of(tasks, tasks.rows_of(0))


def test_queries_that_hold_what_was_planted_in_another_class_are_lured() -> None:
    words: dict[str, list[str] | None] = {QUERIES[0][1]: ["snow"], QUERIES[0][3]: ["snow", "green"]}
    wren, owl = reasons(one_task(words))
    assert wren.lures == [Lure("snow", 1, [1, 3])]
    assert owl.lures == []


def test_queries_in_the_context_of_another_support_are_lured() -> None:
    tasks = one_task({}, dict.fromkeys(QUERIES[1][:3], "green"))
    assert reasons(tasks)[1].lures == [Lure("green", 0, [0, 1, 2])]


def test_a_word_of_the_support_that_no_query_has_is_told_with_its_excess_over_chance() -> None:
    wren, owl = reasons(one_task({"wren": ["branch"], "owl": ["night"], **{item: ["night"] for item in QUERIES[1]}}))
    (found,) = wren.mismatches
    assert (found.word, found.support, found.query) == ("branch", [0], [])
    assert found.excess == pytest.approx(100 - expected_mismatch(1, 4)[1])
    assert owl.mismatches == []  # all items have it


def test_items_of_which_nothing_is_known_do_not_count() -> None:
    words: dict[str, list[str] | None] = {"wren": None, "owl": ["night"], QUERIES[1][0]: None, QUERIES[1][1]: None}
    wren, owl = reasons(one_task(words))
    assert wren.mismatches == []
    assert owl.mismatches[0].excess == pytest.approx(100 - expected_mismatch(1, 2)[1])
