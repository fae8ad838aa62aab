from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from shotproof.core.errors import InputError, InsufficientData
from shotproof.tasks.check import check_tasks
from shotproof.tasks.context.sets import Context, Iid, sample_context
from shotproof.tasks.sampler import sample
from shotproof.tasks.taskset import TaskSet
from tests.context_data import catalog_of_counts, mixtures
from tests.tasks.context.test_sampler import contexts

DESIGN: dict[str, Any] = {"way": 3, "shot": 4, "query": 6, "tasks": 60}


@pytest.mark.parametrize(("several", "held"), [(2, 2), (3, 3), ("all", 5)])
def test_supports_and_queries_have_the_contexts_that_the_sets_say(several: int | str, held: int) -> None:
    catalog = mixtures(contexts=6)
    sets = sample_context(catalog, Context(clean_value="none", support_contexts=several), **DESIGN)
    assert len({tasks.match for tasks in sets.values()}) == 1
    own = [set(names) for names in sets["iid"].table.column("support_contexts").to_pylist()]
    every = {f"context{k}" for k in range(6)}
    assert {len(names) for names in own} == {held}
    for name, tasks in sets.items():
        assert check_tasks(tasks, catalog) == []
        shown, asked = (contexts(tasks, catalog, side) for side in ("support", "query"))
        for row, mine in enumerate(own):
            others = set().union(*own[row // 3 * 3 : row // 3 * 3 + 3]) - mine
            counts = Counter(shown[row])
            assert set(counts) <= mine
            assert max(counts.values()) - min(counts[one] for one in mine) <= 1
            allowed = {"iid": mine, "ood": every - mine, "hard-ood": others, "clean": {"none"}}[name]
            assert set(asked[row]) <= allowed
            assert name == "iid" or not set(asked[row]) & mine
    # Classes may share contexts, and do.
    assert any(own[row] & own[row + 1] for row in range(0, len(own), 3))


def test_classes_and_sets_of_contexts_are_uniform() -> None:
    catalog = mixtures(classes=4, recordings=12, contexts=4)
    tasks = sample(
        catalog, Iid(clean_value="none", support_contexts=2, hard_ood=False), way=2, shot=2, query=2, tasks=3000
    )
    sets = zip(tasks.table.column("label").to_pylist(), tasks.table.column("attribute").to_pylist(), strict=True)
    counts = Counter(sets)
    assert len(counts) == 4 * 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_tasks_do_not_depend_on_the_block() -> None:
    catalog = mixtures(contexts=6)
    sampler = "ood(clean_value='none', support_contexts=3)"
    few, many = (sample(catalog, sampler, **{**DESIGN, "tasks": tasks}) for tasks in (7, 60))
    assert few.table == many.first(7).table


def test_the_checker_finds_a_support_outside_its_contexts() -> None:
    catalog = mixtures(contexts=6)
    tasks = sample(catalog, Iid(clean_value="none", support_contexts=2), **DESIGN)
    rows = tasks.table.to_pylist()
    mine = set(rows[0]["support_contexts"])
    stranger = min({f"context{k}" for k in range(6)} - mine)
    label, recording, _ = rows[0]["support"][0].split("/")
    rows[0]["support"][0] = f"{label}/{recording}/{stranger}"
    found = check_tasks(TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.record), catalog)
    assert any(f"has context '{stranger}'" in each.message for each in found)
    rows = tasks.table.to_pylist()
    first = rows[0]["support_contexts"][0]
    for place, item in enumerate(rows[0]["support"]):
        rows[0]["support"][place] = f"{item.rsplit('/', 1)[0]}/{first}"
    found = check_tasks(TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.record), catalog)
    assert any("support items have the context" in each.message and "uneven" in each.message for each in found)


def test_too_few_contexts_are_named() -> None:
    counts = np.full((3, 3), 9)
    with pytest.raises(
        InsufficientData, match=r"3 classes with 3 contexts.*and more for ood.*'c0' \(k0 9, k1 9, k2 9\)"
    ):
        sample(catalog_of_counts(counts), Iid(support_contexts=3), **DESIGN)
    counts = np.full((3, 4), 9)
    counts[:, 3] = 2  # two items are no six queries, wherever they are left
    with pytest.raises(InsufficientData, match=r"task 0 failed 20 tries.*support_contexts"):
        sample(
            catalog_of_counts(counts), Iid(support_contexts=3, max_tries=20, hard_ood=False), way=3, shot=4, query=10
        )


@pytest.mark.parametrize("value", [0, "every", True, 1.5])
def test_bad_numbers_of_contexts(value: Any) -> None:
    with pytest.raises(
        InputError, match="support_contexts: expected a whole number from 1 to 10,000,000 or all, found"
    ):
        Context(support_contexts=value)
