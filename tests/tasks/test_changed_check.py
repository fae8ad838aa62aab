from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from shotproof.catalog.catalog import Catalog
from shotproof.tasks.changed import Changed
from shotproof.tasks.sampler import sample
from shotproof.tasks.task_check import check_tasks
from shotproof.tasks.taskset import TaskSet
from tests.drawn_layers import draw_masked

Row = dict[str, Any]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return draw_masked(tmp_path_factory.mktemp("masked"), classes=4, items=8)


def changed(catalog: Catalog, change: str, side: Any = "query") -> TaskSet:
    random = sample(catalog, "random", way=3, shot=2, query=2, tasks=5)
    return sample(catalog, Changed(change=change, side=side), like=random)


def violations(tasks: TaskSet, catalog: Catalog, edit: Callable[[Row], object]) -> list[str]:
    rows = tasks.table.to_pylist()
    edit(rows[1])
    return [
        str(each)
        for each in check_tasks(TaskSet(pa.Table.from_pylist(rows, tasks.table.schema), tasks.record), catalog)
    ]


@pytest.mark.parametrize("side", ["query", "support", "both"])
@pytest.mark.parametrize(
    "change", ["blur", "noise(severity=5)", "mixed-same", "mixed-random", "mixed-rival", "only-background"]
)
def test_drawn_tasks_satisfy_their_definition(catalog: Catalog, change: str, side: str) -> None:
    assert check_tasks(changed(catalog, change, side), catalog) == []


@pytest.mark.parametrize(
    ("change", "spelling", "reason"),
    [
        ("blur", "blur(severity=1)", "has the change 'blur(severity=1)' instead of 'blur'"),
        ("blur", "", "has the change 'none'"),
        ("blur", "unheard-of", "has the change 'none'"),
        ("mixed-rival", "mixed-same(plate='OTHER')", "instead of 'mixed-rival'"),
        ("mixed-rival", "mixed-rival(plate='OWN')", "of class"),
        ("mixed-same", "mixed-same(plate='OTHER')", "of class"),
        ("mixed-same", "mixed-same(plate='ITSELF')", "shows its own background"),
        ("mixed-random", "mixed-random(plate='nowhere')", "not in the catalog"),
        ("mixed-random", "mixed-random", "not in the catalog"),
    ],
)
def test_an_item_that_is_changed_in_another_way_is_named(
    catalog: Catalog, change: str, spelling: str, reason: str
) -> None:
    tasks = changed(catalog, change)
    first, second = tasks.table.to_pylist()[:2]
    names = {"OTHER": first["support"][0], "OWN": second["support"][0], "ITSELF": second["query"][0]}
    for name, item in names.items():
        spelling = spelling.replace(name, item)
    found = violations(tasks, catalog, lambda row: row["query_change"].__setitem__(0, spelling))
    assert any(f"query item '{second['query'][0]}'" in message and reason in message for message in found)


def test_the_other_side_stays_as_it_is(catalog: Catalog) -> None:
    both, query = changed(catalog, "blur", "both"), changed(catalog, "blur")
    claimed = TaskSet(both.table, query.record)
    assert any("the support items are changed" in str(each) for each in check_tasks(claimed, catalog))
    claimed = TaskSet(query.table, both.record)
    assert any("the support items are not changed" in str(each) for each in check_tasks(claimed, catalog))


@pytest.mark.parametrize("column", ["context", "habitat"])
def test_a_background_from_elsewhere_than_the_planted_context_is_named(column: str) -> None:
    names = [f"class{c}/{i}" for c in range(4) for i in range(20)]
    columns = {"item": names, "path": names, "mask": names, "label": [name[:6] for name in names]}
    columns[column] = [f"place{number % 4}" for number in range(len(names))]
    catalog = Catalog(pa.table({**columns, "split": ["test"] * len(names)}))
    like = sample(catalog, f"iid(context_column='{column}')", way=3, shot=2, query=2, tasks=5)
    tasks = sample(catalog, Changed(change="mixed-same"), like=like)

    def show_another_place(row: Row) -> None:
        label, place = row["label"], row["attribute"]
        number = next(i for i in range(20) if catalog.table[column][names.index(f"{label}/{i}")].as_py() != place)
        row["query_change"][0] = f"mixed-same(plate='{label}/{number}')"

    assert violations(tasks, catalog, lambda row: None) == []
    assert any("instead of 'place" in text for text in violations(tasks, catalog, show_another_place))
