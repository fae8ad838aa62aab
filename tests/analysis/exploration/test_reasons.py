from __future__ import annotations

import pyarrow as pa
import pytest

from shotproof.analysis.explanation.chance import expected_mismatch
from shotproof.analysis.exploration.explored_tasks import ExploredTasks, explored_tasks
from shotproof.analysis.exploration.reasons import Lure, Reasons, reasons_of
from shotproof.attributes.attributes import Attributes
from shotproof.catalog.catalog import Catalog
from shotproof.evaluation.answers import answers_on
from shotproof.tasks.taskset import TaskSet
from tests.report_files import make_results

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
