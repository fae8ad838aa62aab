from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData, UnknownName
from shotproof.core.records import CatalogRecord
from shotproof.tasks.context.context_sets import Clean, Context, HardOod, Iid, Ood
from shotproof.tasks.sampler import sample, samplers
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet, TaskShape
from tests.context_data import catalog_of_counts, mixtures, sample_context

SETS = ["iid", "ood", "hard-ood", "clean"]
CLEAN = Context(clean_value="none")
DESIGN: dict[str, Any] = {"way": 3, "shot": 2, "query": 5, "tasks": 40}


def contexts(tasks: TaskSet, catalog: Catalog, side: str) -> list[list[str]]:
    of = dict(zip(catalog.items, catalog.table.column("context").to_pylist(), strict=True))
    return [[of[item] for item in items] for items in tasks.table.column(side).to_pylist()]


def test_the_four_sets_share_classes_and_supports() -> None:
    catalog = mixtures()
    sets = sample_context(catalog, CLEAN, **DESIGN)
    assert list(sets) == SETS
    assert len({tasks.match for tasks in sets.values()}) == 1
    assert len({tasks.digest for tasks in sets.values()}) == 4
    for tasks in sets.values():
        assert tasks.table.column("support") == sets["iid"].table.column("support")
        assert check_tasks(tasks, catalog) == []
        for own, context in zip(
            tasks.table.column("attribute").to_pylist(), contexts(tasks, catalog, "support"), strict=True
        ):
            assert set(context) == {own}


def test_queries_are_dealt_out_as_the_sets_say() -> None:
    catalog = mixtures(contexts=5)
    sets = sample_context(catalog, CLEAN, **{**DESIGN, "query": 6})
    own = np.array(sets["iid"].table.column("attribute").to_pylist()).reshape(-1, 3)
    others = [set(own[row // 3]) - {own[row // 3, row % 3]} for row in range(own.size)]
    counts = {name: [Counter(context) for context in contexts(tasks, catalog, "query")] for name, tasks in sets.items()}
    for row, (mine, theirs) in enumerate(zip(own.ravel().tolist(), others, strict=True)):
        assert counts["iid"][row] == {mine: 6}
        assert counts["clean"][row] == {"none": 6}
        assert counts["hard-ood"][row] == dict.fromkeys(theirs, 3)
        # Four other contexts, six items: one each, and the two left over go to the other classes' contexts.
        assert len(counts["ood"][row]) == 4
        assert {context for context, count in counts["ood"][row].items() if count == 2} == theirs
    shares = {name: tasks.record.summary["confounded_share"] for name, tasks in sets.items()}
    assert shares == {"iid": 0, "ood": pytest.approx(4 / 6), "hard-ood": 1, "clean": 0}


def test_no_recording_is_on_both_sides_although_each_is_in_every_context() -> None:
    catalog = mixtures(recordings=9)
    source = dict(zip(catalog.items, catalog.table.column("source").to_pylist(), strict=True))
    for tasks in sample_context(catalog, CLEAN, **{**DESIGN, "query": 7}).values():
        for row in tasks.table.to_pylist():
            assert not {source[item] for item in row["support"]} & {source[item] for item in row["query"]}


def test_a_source_shared_by_classes_is_on_one_side_of_the_task() -> None:
    table = mixtures(recordings=30).table
    shared = [item.split("/")[1] for item in table.column("item").to_pylist()]  # recording r of every class is one
    catalog = Catalog(table.set_column(table.column_names.index("source"), "source", pa.array(shared)))
    for tasks in sample_context(catalog, CLEAN, **DESIGN).values():
        assert check_tasks(tasks, catalog) == []
        for start, stop in zip(tasks.starts[:-1], tasks.starts[1:], strict=True):
            rows = tasks.table.slice(start, stop - start).to_pylist()
            support, query = ({i.split("/")[1] for row in rows for i in row[side]} for side in ("support", "query"))
            assert not support & query


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(2, 4),
    st.integers(1, 3),
    st.integers(1, 7),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 1, 2, 3, "all"]),
)
def test_whatever_is_drawn_from_any_data_keeps_the_definition(
    seed: int, way: int, shot: int, query: int, sources: bool, hard: bool, several: int | str
) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 24, (6, 6)) * rng.binomial(1, 0.8, (6, 6))
    catalog = catalog_of_counts(counts, source_of=2 if sources else None, rng=rng)
    clean = "k5" if seed % 2 else None
    options = {"way": way, "shot": shot, "query": query, "tasks": 8, "seed": seed}
    try:
        options_of: dict[str, Any] = {"clean_value": clean, "hard_ood": hard, "support_contexts": several}
        sampler = Context(**options_of, max_tries=50, skip_small_classes=True)
        sets = sample_context(catalog, sampler, **options)
    except (InsufficientData, UnknownName):
        assume(False)
    assert len({tasks.match for tasks in sets.values()}) == 1
    for tasks in sets.values():
        assert check_tasks(tasks, catalog) == []


def test_classes_contexts_and_items_are_drawn_uniformly() -> None:
    catalog = mixtures(classes=6, recordings=12, contexts=5)
    tasks = sample(catalog, Iid(clean_value="none"), way=3, shot=1, query=1, tasks=4000)
    for column in ("label", "attribute"):
        found = Counter(tasks.table.column(column).to_pylist())
        expected = 12_000 / len(found)
        assert len(found) == (6 if column == "label" else 5)
        assert max(abs(count - expected) for count in found.values()) < 4.5 * np.sqrt(expected)
    for side in ("support", "query"):
        items = Counter(item for items in tasks.table.column(side).to_pylist() for item in items)
        assert len(items) == 6 * 12 * 5
        variance = np.var(list(items.values())) / (12_000 / len(items))
        assert abs(variance - 1) < 4.5 * np.sqrt(2 / len(items))


def test_more_classes_than_queries_leaves_some_contexts_out() -> None:
    catalog = mixtures(contexts=6)
    tasks = sample(catalog, HardOod(clean_value="none"), way=5, shot=1, query=2, tasks=30)
    assert all(max(Counter(context).values()) == 1 for context in contexts(tasks, catalog, "query"))
    assert check_tasks(tasks, catalog) == []


def test_items_without_a_context_take_no_part() -> None:
    table = mixtures().table
    values = [None if value == "none" else value for value in table.column("context").to_pylist()]
    catalog = Catalog(table.set_column(table.column_names.index("context"), "context", pa.array(values)))
    tasks = sample(catalog, "ood", **DESIGN)
    assert tasks.record.summary["items_without_context"] == values.count(None) > 0
    assert {context for held in contexts(tasks, catalog, "query") for context in held} <= set(values) - {None}


def test_any_column_may_hold_the_contexts() -> None:
    catalog = mixtures()
    numbers = [int(name[-1]) if name != "none" else None for name in catalog.table.column("context").to_pylist()]
    renamed = Catalog(catalog.table.drop_columns(["context"]).append_column("camera", pa.array(numbers)))
    tasks = sample(renamed, Iid(context_column="camera"), **DESIGN)
    assert set(tasks.table.column("attribute").to_pylist()) == {"0", "1", "2", "3"}
    assert check_tasks(tasks, renamed) == []
    with pytest.raises(InputError, match=r"no column 'camra'.*did you mean 'camera'"):
        sample(renamed, Iid(context_column="camra"), **DESIGN)


def test_a_set_is_drawn_anew_from_what_its_file_says() -> None:
    catalog = mixtures()
    for tasks in sample_context(catalog, CLEAN, seed=7, **DESIGN).values():
        again = samplers.make({"name": tasks.record.sampler_name, **tasks.record.options})
        assert again.bind(catalog, TaskShape(3, 2, 5), 7).draw(range(40)) == tasks.table


def test_sparse_data_is_searched_for_classes_that_share_contexts() -> None:
    # Two blocks of three classes with three contexts each: only tasks within a block are possible.
    counts = np.kron(np.eye(2, dtype=np.int64), np.full((3, 3), 9))
    tasks = sample(catalog_of_counts(counts), "hard-ood", **DESIGN)
    labels = np.array(tasks.table.column("label").to_pylist()).reshape(-1, 3)
    assert {tuple(sorted(row)) for row in labels.tolist()} == {("c0", "c1", "c2"), ("c3", "c4", "c5")}
    assert tasks.record.summary["tries_max"] == 1


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[9, 9, 0], [9, 0, 2], [3, 3, 3]], r"3 classes with a context.*has 0 of 3;.*'c1' \(k0 9, k2 2\)"),
        ([[9, 9, 5], [9, 9, 5], [9, 9, 5]], r"3 different contexts.*the data has 2;.*'c0' \(k0 9, k1 9, k2 5\)"),
    ],
)
def test_insufficient_data_is_named(counts: list[list[int]], message: str) -> None:
    with pytest.raises(InsufficientData, match=message):
        sample(catalog_of_counts(np.array(counts)), "iid", **DESIGN)


def test_a_hopeless_task_says_what_it_lacked() -> None:
    counts = np.full((4, 8), 0)
    for row in range(4):
        counts[row, [row, row + 1, row + 4]] = 9  # three contexts each, never three classes with the same three
    catalog = catalog_of_counts(counts)
    with pytest.raises(
        InsufficientData, match=r"task 0 failed 20 tries: found no 3 classes that each have 3 items.*hard_ood=False"
    ):
        sample(catalog, Iid(max_tries=20), **DESIGN)
    without = sample_context(catalog, Context(hard_ood=False), **DESIGN)
    assert list(without) == ["iid", "ood"]
    assert all(check_tasks(tasks, catalog) == [] for tasks in without.values())


def test_sources_that_leave_no_query_are_named() -> None:
    table = mixtures(recordings=8).table
    one_source = Catalog(table.set_column(table.column_names.index("source"), "source", table.column("label")))
    with pytest.raises(InsufficientData, match="too few query items"):
        sample(one_source, Iid(clean_value="none", max_tries=20), **DESIGN)


def test_a_catalog_of_mixtures_says_what_is_clean() -> None:
    catalog = mixtures()
    told = Catalog(catalog.table, catalog.root, CatalogRecord(clean_value="none"))
    sets, expected = sample_context(told, **DESIGN), sample_context(catalog, CLEAN, **DESIGN)
    assert {name: tasks.digest for name, tasks in sets.items()} == {
        name: tasks.digest for name, tasks in expected.items()
    }
    assert sample(told, "clean", **DESIGN).digest == expected["clean"].digest
    other = Catalog(told.table.append_column("place", told.table.column("context")), told.root, told.record)
    assert "clean" not in sample_context(other, "context(context_column='place')", **DESIGN)


def test_what_the_catalog_says_is_recorded_and_not_spelled() -> None:
    told = Catalog(mixtures().table, record=CatalogRecord(clean_value="none"))
    tasks = sample(told, "ood", **DESIGN)
    assert (tasks.record.name, tasks.record.options["clean_value"]) == ("ood", "none")
    assert sample_context(told, **DESIGN)["ood"].record == tasks.record


def test_bad_options() -> None:
    catalog = mixtures()
    with pytest.raises(InputError, match=r"sampler 'clean' .*, e\.g\. clean\(clean_value='none'\)"):
        sample(catalog, Clean(), **DESIGN)
    with pytest.raises(UnknownName, match="unknown clean value 'non': did you mean 'none'"):
        sample(catalog, Iid(clean_value="non"), **DESIGN)
    with pytest.raises(InputError, match="sampler 'hard-ood': hard_ood=False"):
        HardOod(hard_ood=False)
    with pytest.raises(
        InputError, match="sampler 'ood': max_tries: expected a whole number from 1 to 10,000,000, found 0"
    ):
        Ood(max_tries=0)


def test_all_sets_at_once_are_not_one_set() -> None:
    catalog = mixtures()
    with pytest.raises(InputError, match=r"several matched sets \(iid, ood, hard-ood\): draw each by its name"):
        sample(catalog, "context", **DESIGN)
    assert list(Context(clean_value="none").sets()) == SETS
    assert list(Context(hard_ood=False).sets(catalog)) == ["iid", "ood"]


SEVERAL_DESIGN: dict[str, Any] = {"way": 3, "shot": 4, "query": 6, "tasks": 60}


@pytest.mark.parametrize(("several", "held"), [(2, 2), (3, 3), ("all", 5)])
def test_supports_and_queries_have_the_contexts_that_the_sets_say(several: int | str, held: int) -> None:
    catalog = mixtures(contexts=6)
    sets = sample_context(catalog, Context(clean_value="none", support_contexts=several), **SEVERAL_DESIGN)
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
    few, many = (sample(catalog, sampler, **{**SEVERAL_DESIGN, "tasks": tasks}) for tasks in (7, 60))
    assert few.table == many.first(7).table


def test_the_checker_finds_a_support_outside_its_contexts() -> None:
    catalog = mixtures(contexts=6)
    tasks = sample(catalog, Iid(clean_value="none", support_contexts=2), **SEVERAL_DESIGN)
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
        sample(catalog_of_counts(counts), Iid(support_contexts=3), **SEVERAL_DESIGN)
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
