"""Shifted tasks and their matched set: conditions hold, queries are shared, and insufficient data is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from shotproof.catalog.catalog import Catalog
from shotproof.core.errors import InputError, InsufficientData
from shotproof.tasks.sampler import sample, samplers
from shotproof.tasks.shift import Shift
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet

DESIGN: dict[str, Any] = {"way": 2, "shot": 2, "query": 3, "tasks": 40}
SIDES: dict[str, Any] = {"support_where": "view = side", "query_where": "view in (front, back)"}


def catalog_of_views(counts: list[tuple[int, int, int]], sources: bool = False) -> Catalog:
    """Classes with so many side, front and back views; `sources`: items in pairs of one source."""
    views = [v for count in counts for v, n in zip(("side", "front", "back"), count, strict=True) for _ in range(n)]
    labels = [f"class{c:02d}" for c, count in enumerate(counts) for _ in range(sum(count))]
    items = [f"{label}/{i:03d}" for i, label in enumerate(labels)]
    columns = {"item": items, "path": items, "label": labels, "split": ["test"] * len(items), "view": views}
    return Catalog(pa.table(columns | ({"source": [f"s{i // 2}" for i in range(len(items))]} if sources else {})))


def views_of(catalog: Catalog) -> dict[str, str]:
    return dict(zip(catalog.items, catalog.table.column("view").to_pylist(), strict=True))


@pytest.mark.parametrize("sources", [False, True])
def test_both_sides_keep_their_conditions_and_the_sets_share_their_queries(sources: bool) -> None:
    catalog = catalog_of_views([(8, 8, 8)] * 4, sources)
    view = views_of(catalog)
    shifted, plain = (sample(catalog, Shift(**SIDES, shifted=s), **DESIGN) for s in (True, False))
    for tasks, allowed in ((shifted, {"side"}), (plain, {"front", "back"})):
        assert {view[i] for row in tasks.table.to_pylist() for i in row["support"]} == allowed
        assert {view[i] for row in tasks.table.to_pylist() for i in row["query"]} == {"front", "back"}
        assert check_tasks(tasks, catalog) == []
    shared = ["task", "slot", "label", "query"]
    assert shifted.table.select(shared).equals(plain.table.select(shared))
    assert shifted.match == plain.match == plain.digest


def test_the_matched_set_may_have_a_condition_of_its_own() -> None:
    """Objects per image, as in COCO: queries with one, supports with more than three, or with one or two."""
    catalog = catalog_of_views([(8, 8, 8)] * 4)
    objects = pa.array([1 + place % 6 for place in range(len(catalog))])
    counted = Catalog(catalog.table.append_column("objects", objects))
    count = dict(zip(counted.items, objects.to_pylist(), strict=True))
    where = {"support_where": "objects > 3", "query_where": "objects = 1", "matched_where": "objects in (1, 2)"}
    design = {**DESIGN, "query": 2}
    shifted, plain = (sample(counted, Shift(**where, shifted=one), **design) for one in (True, False))
    for tasks, allowed in ((shifted, {4, 5, 6}), (plain, {1, 2})):
        assert {count[i] for row in tasks.table.to_pylist() for i in row["support"]} == allowed
        assert {count[i] for row in tasks.table.to_pylist() for i in row["query"]} == {1}
    assert shifted.table.column("query").equals(plain.table.column("query"))
    assert shifted.match == plain.digest


def catalog_of_users() -> tuple[Catalog, dict[str, str]]:
    """Four classes of three users with eight items each, but user c has two of the classes only; as in ORBIT."""
    views = catalog_of_views([(12, 6, 6)] * 4)
    labels = views.table.column("label").to_pylist()
    users = ["abc"[place % 3] for place in range(len(views))]
    kept = [not (user == "c" and label in ("class00", "class01")) for user, label in zip(users, labels, strict=True)]
    catalog = Catalog(views.table.append_column("user", pa.array(users)).filter(pa.array(kept)))
    return catalog, dict(zip(catalog.items, catalog.table.column("user").to_pylist(), strict=True))


@pytest.mark.parametrize("shifted", [True, False])
def test_grouped_tasks_have_the_items_of_one_user(shifted: bool) -> None:
    catalog, user = catalog_of_users()
    sampler = Shift(support_where="view = side", query_where="any", matched_where="any", group="user", shifted=shifted)
    tasks = sample(catalog, sampler, way=3, shot=2, query=2, tasks=60)
    users = []
    for start in tasks.starts[:-1]:
        rows = tasks.table.slice(int(start), 3).to_pylist()
        (own,) = {user[item] for row in rows for item in row["support"] + row["query"]}
        assert {row["group"] for row in rows} == {own}
        users.append(own)
    assert set(users) == {"a", "b"}  # user c has too few classes
    assert stats.binomtest(users.count("a"), 60).pvalue > 1e-3
    assert tasks.record.summary["groups_left_out"] == ["c"]
    views = views_of(catalog)
    shown = {views[item] for row in tasks.table.to_pylist() for item in row["support"]}
    assert shown == ({"side"} if shifted else {"side", "front", "back"})
    with pytest.raises(
        InsufficientData, match=r"the data has 0 of 4 in user 'a', the best group: e\.g\. class 'class00' has"
    ):
        sample(catalog, sampler, way=3, shot=5, query=2)


def test_each_task_draws_one_of_several_conditions() -> None:
    """Viewpoints, as in CURE-OR: each is asked about with the others as support."""
    catalog = catalog_of_views([(8, 8, 8)] * 4)
    view = views_of(catalog)
    cases = [({"side"}, {"front"}), ({"front", "back"}, {"side"}), ({"side", "front"}, {"back"})]
    spelled: dict[str, Any] = {
        "support_where": ["view = side", "view in (front, back)", "view != back"],
        "query_where": ["view = front", "view = side", "view = back"],
    }
    shifted, plain = (
        sample(catalog, Shift(**spelled, shifted=one), **{**DESIGN, "tasks": 90}) for one in (True, False)
    )
    drawn = []
    for start in shifted.starts[:-1]:
        one, other = (tasks.table.slice(int(start), 2).to_pylist() for tasks in (shifted, plain))
        case = one[0]["case"]
        support, query = ({view[item] for row in one for item in row[side]} for side in ("support", "query"))
        assert support <= cases[case][0]
        assert query == cases[case][1] == {view[item] for row in other for item in row["support"]}
        assert [row["case"] for row in one + other] == [case] * 4
        drawn.append(case)
    assert stats.chisquare(np.bincount(drawn, minlength=3)).pvalue > 1e-3
    assert shifted.match == plain.digest
    assert samplers.make(Shift(**spelled).spelling) == Shift(**spelled)


def test_items_are_drawn_uniformly_among_those_allowed() -> None:
    tasks = sample(catalog_of_views([(6, 5, 5)] * 3), Shift(**SIDES), **{**DESIGN, "tasks": 800}).table
    for side, count in (("support", 18), ("query", 30)):
        counts = np.unique(tasks.column(side).combine_chunks().flatten().to_pylist(), return_counts=True)[1]
        assert len(counts) == count
        assert stats.chisquare(counts).pvalue > 1e-4


def test_conditions_that_overlap_never_share_an_item() -> None:
    sampler = Shift(support_where="label != x", query_where="label != x")
    tasks = sample(catalog_of_views([(4, 3, 3)] * 3), sampler, **DESIGN)
    for row in tasks.table.to_pylist():
        assert not set(row["support"]) & set(row["query"])


def test_classes_that_cannot_give_both_sets_are_left_out_and_recorded() -> None:
    # class01 has too few side views, class02 too few others for the set without shift.
    catalog = catalog_of_views([(8, 4, 4), (1, 9, 9), (9, 2, 2), (8, 4, 4)])
    tasks = sample(catalog, Shift(**SIDES), **DESIGN)
    assert set(tasks.table.column("label").to_pylist()) == {"class00", "class03"}
    assert tasks.record.summary == {
        "classes_left_out": ["class01", "class02"],
        "support_items": 26,
        "query_items": 38,
    }
    assert tasks.record.options["support_where"] == "view = side"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"support_where": "view = sied"},
            InsufficientData,
            "support condition .*; no item has view = sied: did you mean 'side'",
        ),
        ({"query_where": "view = side and view = front"}, InsufficientData, "no item meets the query condition"),
        (
            {"query_where": "view = back"},
            InsufficientData,
            "the data has 0 of 2: e.g. class 'class00' has 4 and 8; lower the ways",
        ),
        ({"support_where": None}, InputError, "support_where: expected text or a list of text, found None"),
        ({"query_where": "blurry"}, InputError, "no attributes were given"),
        (
            {"matched_where": "view = font"},
            InsufficientData,
            "the matched support condition .* no item has view = font",
        ),
        (
            {"matched_where": "view = back", "query_where": "view = front"},
            InsufficientData,
            "2 others that meet 'view = back' for the set without shift, .* 'class00' has 4, 1 and 8; lower",
        ),
        ({"group": "usr"}, InputError, "unknown column of the catalog 'usr'"),
        (
            {"support_where": ["any"] * 2, "query_where": ["any"] * 3},
            InputError,
            "support_where 2, query_where 3",
        ),
        ({"support_where": []}, InputError, "conditions on each side, found support_where 0"),
    ],
)
def test_bad_input(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sample(
            catalog_of_views([(8, 4, 1 if "matched_where" in changes else 4)] * 2),
            Shift(**{**SIDES, **changes}),
            **DESIGN,
        )


def test_both_conditions_are_needed() -> None:
    with pytest.raises(InputError, match=r"needs query_where: e\.g\. shift\(support_where='blurry', query_where="):
        samplers.make("shift(support_where='dark')")


def test_sources_that_cannot_part_are_told() -> None:
    items = [f"class{c}/{i}" for c in range(2) for i in range(20)]
    columns = {"item": items, "path": items, "label": [i[:6] for i in items], "split": ["test"] * 40}
    catalog = Catalog(pa.table(columns | {"source": [i[:6] for i in items]}))
    with pytest.raises(InsufficientData, match="3 queries never left 2 support items of other sources"):
        sample(catalog, Shift(support_where="label != x", query_where="label != x"), **DESIGN)


def test_fewer_tasks_match_the_first_ones() -> None:
    catalog = catalog_of_views([(8, 8, 8)] * 4)
    plain = sample(catalog, Shift(**SIDES, shifted=False), **DESIGN)
    few: TaskSet = sample(catalog, Shift(**SIDES), **{**DESIGN, "tasks": 10})
    assert few.match == plain.first(10).digest
