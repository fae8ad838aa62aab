"""What the searches for supports share: whose queries they take, which candidates they allow, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, Mismatch
from shotproof.core.runtime.runtime import runtime
from shotproof.features.features import Features
from shotproof.tasks.sampler import sample
from shotproof.tasks.search import support_sampler
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from tests.searched_tasks import accuracy, search, world

NAMES = ["fastdiffsel", "greedy", "hardest"]
Given = tuple[Catalog, Features]


@pytest.fixture(scope="module")
def given() -> Given:
    return world()


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def queries(tasks: TaskSet) -> list[Any]:
    return tasks.table.select(["task", "slot", "label", "query"]).to_pylist()


def test_easy_tasks_are_easier_than_random_ones_and_hard_tasks_harder(name: str, given: Given) -> None:
    catalog, features = given
    random = sample(catalog, "random", way=4, shot=3, query=8, tasks=40)
    hard, easy = (search(name, given, mode=mode) for mode in ("hard", "easy"))
    assert queries(hard) == queries(easy) == queries(random)
    assert hard.match == easy.match == random.digest
    assert accuracy(hard, features) < accuracy(random, features) - 0.1
    assert accuracy(easy, features) > accuracy(random, features)


def test_queries_ways_and_shots_come_from_the_set_to_be_like(name: str, given: Given) -> None:
    catalog = given[0]
    base = sample(catalog, "random", way=4, shot=3, query=8, tasks=12, seed=9)
    rows = base.table.to_pylist()
    # Tasks of 3 and 4 ways, with 1 to 3 shots and 5 to 8 queries.
    rows = [row for row in rows if row["slot"] < 3 or row["task"] % 2]
    for index, row in enumerate(rows):
        row["support"], row["query"] = row["support"][: 1 + index % 3], row["query"][: 5 + index % 4]
    like = TaskSet(pa.Table.from_pylist(rows, base.table.schema))
    tasks = search(name, given, like=like, tasks=None)
    assert len(tasks) == 12
    assert queries(tasks) == queries(like)
    assert [len(row["support"]) for row in tasks.table.to_pylist()] == [len(row["support"]) for row in rows]
    assert check_tasks(tasks, catalog) == []
    assert tasks.match == like.digest
    assert (tasks.record.way, tasks.record.shot, tasks.record.query) == (None, None, None)
    assert tasks.record.source("like") == like.digest
    again = search(name, given, like=tasks, mode="easy", tasks=None)
    assert again.match == like.digest
    assert search(name, given, like=like, tasks=5).match == like.first(5).digest


def test_the_size_of_batches_changes_nothing(name: str, given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = search(name, given)
    monkeypatch.setattr(support_sampler, "BUDGET", 2**14)
    assert search(name, given).digest == whole.digest


def test_equal_features_are_told_apart_by_name(name: str, given: Given) -> None:
    catalog, _ = given
    values = np.random.default_rng(0).normal(size=(len(catalog) // 4, 6)).repeat(4, axis=0)
    features = Features.from_array(catalog.items, values)
    assert search(name, (catalog, features)).digest == search(name, (catalog, features), tasks=41).first(40).digest


def test_lengths_do_not_matter_where_features_are_normalized(name: str, given: Given) -> None:
    catalog, features = given
    lengths = 2.0 ** np.random.default_rng(0).integers(-3, 4, size=(len(features), 1))
    stretched = Features.from_array(catalog.items, features.array * lengths)
    assert search(name, (catalog, stretched), normalize=True).digest == search(name, given, normalize=True).digest
    assert search(name, (catalog, stretched)).digest != search(name, given).digest


def test_no_candidate_has_the_source_of_a_query(name: str, given: Given) -> None:
    catalog, features = given
    sources = pa.array([f"source{i // 3}" for i in range(len(catalog))])
    shared = Catalog(catalog.table.append_column("source", sources))
    tasks = search(name, (shared, features), query=6)
    assert check_tasks(tasks, shared) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "heard"}, "mode: expected hard or easy, found 'heard': did you mean 'hard'"),
        ({"scale": 0}, "scale: expected a number above 0"),
    ],
)
def test_bad_options(given: Given, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        search("greedy", given, **options)


def test_the_device_is_that_of_the_runtime(name: str, given: Given) -> None:
    whole = search(name, given)
    with runtime(device="cpu"):
        assert search(name, given).digest == whole.digest
    with runtime(device="gpu"), pytest.raises(InputError, match="device 'gpu' cannot be used"):
        search(name, given)


def test_features_must_be_complete_and_finite(name: str, given: Given) -> None:
    catalog, features = given
    with pytest.raises(Mismatch, match=r"the features lack 1 of the \d+ items, e\.g\. 'class007/item0039'"):
        search(name, (catalog, Features(features.table.slice(0, len(catalog) - 1))))
    values = features.array.copy()
    values[:, 0][85] = np.nan
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), from_pandas=False), values.shape[1])
    broken = Features(features.table.set_column(1, "feature", lists))
    with pytest.raises(InputError, match=r"item 'class002/item0005' .*not finite"):
        search(name, (catalog, broken))


def test_a_set_to_be_like_must_be_of_the_same_data(name: str, given: Given) -> None:
    like = sample(given[0], "random", way=4, shot=3, query=8, tasks=3)
    labels = like.table.column("label").to_pylist()
    renamed = TaskSet(like.table.set_column(2, "label", pa.array(["crow", *labels[1:]])))
    with pytest.raises(Mismatch, match="have the class 'crow', which this catalog"):
        search(name, given, like=renamed)
    query = like.table.column("query").to_pylist()
    query[1] = query[0]
    moved = TaskSet(like.table.set_column(5, "query", pa.array(query)))
    with pytest.raises(Mismatch, match=f"have the query item '{query[0][0]}', which this catalog"):
        search(name, given, like=moved)


def test_a_pool_can_be_too_small(name: str, given: Given) -> None:
    catalog, features = given
    like = sample(catalog, "random", way=4, shot=3, query=8, tasks=3)
    rows = like.table.to_pylist()
    keep = {item for row in rows for item in row["query"]} | {catalog.items[0]}
    few = Catalog(catalog.table.filter(pa.array([item in keep for item in catalog.items])))
    with pytest.raises(
        InsufficientData, match=r"task 0: class '\w+' has \d items that are neither queries.*support needs 3"
    ):
        search(name, (few, features), like=like.first(1))
