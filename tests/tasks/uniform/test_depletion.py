"""Depletion: no item twice, the set ends where the data does, and every choice is as likely as the algorithm says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InsufficientData
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from shotproof.tasks.uniform.depletion import can_split, draw_classes


def catalog_of(sizes: list[int], sources: list[str] | None = None) -> Catalog:
    items = [f"class{c:02d}/item{i:03d}" for c, size in enumerate(sizes) for i in range(size)]
    columns: dict[str, Any] = {"item": items, "path": items, "label": [i.split("/")[0] for i in items]}
    columns["split"] = ["test"] * len(items)
    return Catalog(pa.table(columns | ({"source": sources} if sources else {})))


def items_of(tasks: TaskSet) -> list[str]:
    rows = tasks.table.to_pylist()
    return [item for row in rows for item in row["support"] + row["query"]]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(5, 30), min_size=3, max_size=9),
    seed=st.integers(0, 2**32),
    shot=st.integers(1, 2),
    query=st.integers(1, 3),
)
def test_no_item_twice_and_too_little_is_left(sizes: list[int], seed: int, shot: int, query: int) -> None:
    catalog = catalog_of(sizes)
    tasks = sample(catalog, "depletion", way=3, shot=shot, query=query, seed=seed)
    used = items_of(tasks)
    assert len(used) == len(set(used)) == len(tasks) * 3 * (shot + query)
    taken = Counter(item.split("/")[0] for item in used)
    assert sum(size - taken[f"class{c:02d}"] >= shot + query for c, size in enumerate(sizes)) < 3
    assert check_tasks(tasks, catalog) == []


def test_equal_classes_all_in_every_task_use_the_data_up() -> None:
    tasks = sample(catalog_of([40] * 4), "depletion", way=4, shot=3, query=5)
    assert len(tasks) == 5
    assert len(set(items_of(tasks))) == 160


def test_fewer_tasks_are_the_first_ones_and_no_more_are_given_than_there_are() -> None:
    catalog = catalog_of([40] * 8)
    whole = sample(catalog, "depletion", way=4, shot=1, query=4)
    few = sample(catalog, "depletion", way=4, shot=1, query=4, tasks=5)
    assert few.digest == whole.first(5).digest
    assert sample(catalog, "depletion", way=4, shot=1, query=4, tasks=5000).digest == whole.digest
    assert whole.record.tasks == whole.record.summary["tasks_in_all"] == len(whole)
    assert few.record.summary["tasks_in_all"] == len(whole)
    assert check_tasks(few, catalog) == []


def test_every_set_of_classes_is_as_likely_and_so_is_every_item() -> None:
    pairs, firsts = Counter[tuple[str, ...]](), Counter[str]()
    catalog = catalog_of([6] * 4)
    for seed in range(600):
        rows = sample(catalog, "depletion", way=2, shot=1, query=2, tasks=1, seed=seed).table.to_pylist()
        pairs[tuple(row["label"] for row in rows)] += 1
        firsts[rows[0]["support"][0]] += 1
    assert len(pairs) == 12
    assert stats.chisquare(list(pairs.values())).pvalue > 0.01
    assert len(firsts) == 24
    assert stats.chisquare(list(firsts.values())).pvalue > 0.01


def test_a_class_drops_out_when_it_is_used_up() -> None:
    classes, turns = draw_classes([1, 3, 9, 9], 2, seed=3)
    used = np.bincount(classes.ravel(), minlength=4)
    assert (used <= [1, 3, 9, 9]).all()
    assert ((used < [1, 3, 9, 9]).sum()) < 2
    for c in range(4):  # a class gives its draws in their order, each once
        assert turns[classes == c].tolist() == list(range(used[c]))


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6), shot=st.integers(1, 4), query=st.integers(1, 5))
def test_parting_by_source_agrees_with_trying_all(sizes: list[int], shot: int, query: int) -> None:
    sources = [source for source, size in enumerate(sizes) for _ in range(size)]
    choices = (set(some) for n in range(len(sizes) + 1) for some in combinations(range(len(sizes)), n))
    expected = any(
        sum(sizes[s] for s in some) >= shot and sum(n for s, n in enumerate(sizes) if s not in some) >= query
        for some in choices
    )
    assert can_split(sources, shot, query) == expected


@settings(max_examples=25, deadline=None)
@given(group=st.integers(2, 6), seed=st.integers(0, 1000), shot=st.integers(1, 3))
def test_sources_stay_on_one_side_until_the_data_ends(group: int, seed: int, shot: int) -> None:
    sizes = [14, 15, 21, 30]
    sources = [f"source{c}-{i // group}" for c, size in enumerate(sizes) for i in range(size)]
    catalog = catalog_of(sizes, sources)
    tasks = sample(catalog, "depletion", way=2, shot=shot, query=4, seed=seed)
    assert check_tasks(tasks, catalog) == []


def test_sources_that_cannot_part_are_told() -> None:
    catalog = catalog_of([12] * 3, ["one"] * 12 + [f"s{i}" for i in range(24)])
    with pytest.raises(InsufficientData, match=r"class 'class00' has 1 sources in 12 items, .* 2 support and 3"):
        sample(catalog, "depletion", way=2, shot=2, query=3)


def test_the_check_finds_an_item_used_twice_and_an_early_end() -> None:
    catalog = catalog_of([20] * 4)
    tasks = sample(catalog, "depletion", way=3, shot=1, query=4)
    rows = tasks.table.to_pylist()
    later = next(row for row in rows[3:] if row["label"] == rows[0]["label"])
    later["support"] = rows[0]["support"]
    twice = TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.record)
    messages = [str(check_task) for check_task in check_tasks(twice, catalog)]
    assert any(f"item '{rows[0]['support'][0]}' is already in task 0" in message for message in messages)
    early = TaskSet(tasks.first(1).table, replace(tasks.record, summary={"tasks_in_all": 1}))
    assert "4 classes have enough items" in str(check_tasks(early, catalog)[0])
