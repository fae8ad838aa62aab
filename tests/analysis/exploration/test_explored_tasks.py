from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from shotproof.analysis.exploration.explored_tasks import NONE, ExploredTasks, explored_tasks
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.answers import answers_on
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
    assert found.held is None
